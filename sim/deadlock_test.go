package sim

import (
	"errors"
	"testing"
)

// fixtures are D1 to D4: multicast packets of 8 flits that start together.
var fixtures = []struct {
	name    string
	m, n    int
	packets []multicast
	dead    []Copying // that deadlock
}{
	{"D1", 1, 4, []multicast{
		{[2]int{0, 1}, [][2]int{{0, 0}, {0, 3}}},
		{[2]int{0, 2}, [][2]int{{0, 0}, {0, 3}}},
	}, []Copying{Wormhole, GreedyWormhole}},
	{"D2", 2, 2, []multicast{
		{[2]int{0, 0}, [][2]int{{0, 1}, {1, 1}}},
		{[2]int{1, 0}, [][2]int{{0, 1}, {1, 1}}},
	}, []Copying{Wormhole, GreedyWormhole}},
	{"D3", 3, 4, []multicast{
		{[2]int{1, 3}, [][2]int{{1, 0}}},
		{[2]int{0, 1}, [][2]int{{1, 2}, {1, 0}}},
		{[2]int{2, 2}, [][2]int{{1, 3}, {1, 1}}},
		{[2]int{1, 1}, [][2]int{{1, 3}}},
	}, []Copying{Reserving}},
	{"D4", 2, 4, []multicast{
		{[2]int{0, 0}, [][2]int{{1, 1}, {1, 3}}},
		{[2]int{0, 1}, [][2]int{{1, 3}}},
		{[2]int{0, 1}, [][2]int{{1, 3}, {1, 1}}},
	}, []Copying{LockStep}},
}

// run sends a packet of 8 flits for each of a plan's trees at time 0.
func runFixture(t *testing.T, g *grid, packets []multicast, cfg Config) (*Sim, *log, error) {
	t.Helper()
	plan := g.plan(t, packets)
	l := &log{}
	s := mustNew(t, Network{Fabric: g.Fabric, Multicast: plan.Tables}, cfg, l)
	for _, p := range packets {
		for _, tree := range plan.Trees {
			if packets[tree.Group].from[0] == p.from[0] && &packets[tree.Group].to[0] == &p.to[0] {
				mustSend(t, s, Message{Src: tree.Senders[0], DLID: tree.MLID, Bytes: 8})
			}
		}
	}
	return s, l, s.Run(t.Context(), Forever)
}

func TestFixtures(t *testing.T) {
	for _, tt := range fixtures {
		g := newGrid(t, tt.m, tt.n)
		for c := Independent; c <= GreedyWormhole; c++ {
			for _, a := range []Arbitration{RoundRobin, FIFO, LowestPort} {
				line := ""
				for buffer := 1; buffer <= 8; buffer++ {
					if buffer < 8 && !c.flits() {
						continue
					}
					cfg := cycles(c, buffer)
					cfg.Arbitration = a
					_, _, err := runFixture(t, g, tt.packets, cfg)
					var dead *DeadlockError
					if errors.As(err, &dead) {
						line += "D"
					} else if err == nil {
						line += "-"
					} else {
						line += err.Error()
					}
				}
				t.Log(tt.name, c, a, line)
			}
		}
	}
}
