-- inner_hot is busy for half a second.
local function inner_hot(count)
  local sum = 1
  for i = 1, count do sum = (sum + i * 7) % 1048573 end
  return sum
end

local done = os.clock() + 0.4
while os.clock() < done do inner_hot(20000) end
print("done")
