%% inner_hot is busy for a second of processor time, called by outer_warm.
-module(hot).
-export([main/0]).

inner_hot(0, Sum) -> Sum;
inner_hot(Count, Sum) ->
    inner_hot(Count - 1, ((Sum bxor 16#5DEECE6) + Count) band 16#FFFFFF).

outer_warm(0, Sum) -> Sum;
outer_warm(Count, Sum) -> outer_warm(Count - 1, Sum + inner_hot(2000, 1)).

main() ->
    busy(used() + 1000),
    io:format("done~n").

busy(End) ->
    outer_warm(20, 0),
    case used() < End of
        true -> busy(End);
        false -> ok
    end.

used() -> element(1, statistics(runtime)).
