// inner_hot is busy for about half a second, called by outer_warm. Without imports: it compiles in a few seconds.
package main

//go:noinline
func inner_hot(count uint64) uint64 {
	sum := uint64(1)
	for i := uint64(1); i < count; i++ {
		sum += (sum ^ 0x5DEECE6) / i
	}
	return sum
}

//go:noinline
func outer_warm(count int) uint64 {
	sum := uint64(0)
	for i := 0; i < count; i++ {
		sum += inner_hot(2000)
	}
	return sum
}

func main() {
	if outer_warm(40000) == 0 {
		panic("nothing")
	}
}
