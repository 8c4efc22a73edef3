package main

import "testing"

func TestAProcessThatItsOwnLimitHasEndedIsToldFromOneThatTheMachineHasEnded(t *testing.T) {
	then := memoryCounts{kills: 2, limit: 5, stalls: 7}
	for _, c := range []struct {
		what      string
		now       memoryCounts
		isReached bool
		want      bool
	}{
		{"nothing was ended", memoryCounts{kills: 2, limit: 5, stalls: 9}, true, false},
		{"version 2: the limit was the cause", memoryCounts{kills: 3, limit: 6, stalls: 7}, false, false},
		{"version 2: it was not", memoryCounts{kills: 3, limit: 5, stalls: 7}, false, true},
		{"version 1: the limit was reached", memoryCounts{kills: 3, limit: 5, stalls: 7}, true, false},
		{"version 1: it was reached, and the machine was short of memory", memoryCounts{kills: 3, limit: 5, stalls: 8}, true, true},
	} {
		if got := c.now.endedFromOutside(then, func() bool { return c.isReached }); got != c.want {
			t.Errorf("%s: %v", c.what, got)
		}
	}
}

func TestACounterIsFoundByItsWholeName(t *testing.T) {
	events := "low 0\nhigh 0\nmax 61\noom 1\noom_kill 4\noom_group_kill 0\n"
	if countIn(events, "oom ") != 1 || countIn(events, "oom_kill ") != 4 || countIn(events, "none ") != 0 || countIn(events, "low ") != 0 {
		t.Fatalf("%d %d", countIn(events, "oom "), countIn(events, "oom_kill "))
	}
}
