package mesh

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/lft"
)

// TestLIDs has G-X1, the paper's 4x4 example with row y=3 on top, the LIDs
// that it names in a 5x5 mesh, and those of a 2x3 mesh, where the printed
// formula gives two hosts one LID (E-X1).
func TestLIDs(t *testing.T) {
	g := generated(t, Spec{Dims: []int{4, 4}, Hosts: 1}, lft.LIDOptions{Policy: lft.MeshLIDs})
	hosts := hostLIDs(g)
	var rows []string
	for y := 3; y >= 0; y-- {
		var row []string
		for x := range 4 {
			row = append(row, fmt.Sprintf("%2d", hosts[fmt.Sprintf("host %d,%d", x, y)]))
		}
		rows = append(rows, strings.Join(row, " "))
	}
	if got, want := strings.Join(rows, "\n"), ` 4  8 12 16
 3  7 11 15
 2  6 10 14
 1  5  9 13`; got != want {
		t.Errorf("4x4:\n%s\nwant\n%s", got, want)
	}
	for s := range fabric.NodeID(16) {
		if got, want := g.Fabric.LID(g.Fabric.PortBase(s)), fabric.LID(16+g.Position(s)+1); got != want {
			t.Errorf("4x4: switch N(%v) has LID %d, want %d", g.Coord(s), got, want)
		}
	}

	hosts = hostLIDs(generated(t, Spec{Dims: []int{5, 5}, Hosts: 1}, lft.LIDOptions{Policy: lft.MeshLIDs}))
	for at, want := range map[string]fabric.LID{"0,3": 4, "0,4": 5, "3,3": 19, "4,0": 21, "4,2": 23, "2,2": 13} {
		short.Equal(t, hosts["host "+at], want, "5x5: N", at, "has LID")
	}

	hosts = hostLIDs(generated(t, Spec{Dims: []int{2, 3}, Hosts: 1}, lft.LIDOptions{Policy: lft.MeshLIDs}))
	if hosts["host 0,2"] != 3 || hosts["host 1,0"] != 4 {
		t.Errorf("2x3: N(0,2) has LID %d, N(1,0) %d, want 3 and 4", hosts["host 0,2"], hosts["host 1,0"])
	}
	for _, tt := range []struct{ m, n, distinct int }{{2, 3, 5}, {4, 8, 20}, {8, 16, 72}} {
		printed, ours := make(map[int]bool), make(map[int]bool)
		for x := range tt.m {
			for y := range tt.n {
				printed[x*tt.m+y+1] = true
				ours[x*tt.n+y+1] = true
			}
		}
		if len(printed) != tt.distinct || len(ours) != tt.m*tt.n {
			t.Errorf("%dx%d: the printed formula gives %d LIDs, want %d; the corrected one %d", tt.m, tt.n, len(printed), tt.distinct, len(ours))
		}
	}
}

func hostLIDs(g *Grid) map[string]fabric.LID {
	lids := make(map[string]fabric.LID)
	for _, p := range g.Fabric.CAPorts() {
		lids[g.Fabric.Node(g.Fabric.Owner(p)).Description] = g.Fabric.LID(p)
	}
	return lids
}

// TestLIDsByRule reads positions back from LIDs, on grids with several hosts,
// missing switches and LMCs.
func TestLIDsByRule(t *testing.T) {
	for _, tt := range []struct {
		name    string
		plot    plot
		blocks  int
		lmc     int
		highest fabric.LID
	}{
		{"three dimensions", plot{dims: []int{2, 3, 4}, seed: 1}, 1, 0, 48},
		{"three hosts", plot{dims: []int{3, 3}, hosts: func(int) int { return 3 }, seed: 2}, 3, 0, 36},
		{"hosts on a few", plot{dims: []int{3, 3}, hosts: func(at int) int { return at % 3 }, seed: 3}, 2, 0, 27},
		{"no hosts", plot{dims: []int{3}, hosts: func(at int) int { return 0 }}, 0, 0, 3},
		{"a switch missing", plot{dims: []int{3, 3}, absent: func(at int) bool { return at == 4 }, seed: 4}, 1, 0, 18},
		{"LMC 2", plot{dims: []int{3, 3}, hosts: func(int) int { return 2 }, lmc: 2, seed: 5}, 2, 2, 84},
	} {
		g := grow(t, tt.plot)
		f, err := lft.AssignLIDs(g.Fabric, lft.LIDOptions{Policy: lft.MeshLIDs, LMC: lft.KeepLMC, MeshBases: g.LIDs})
		if err != nil {
			t.Fatalf("%s: %v", tt.name, err)
		}
		short.Equal(t, f.MaxLID(), tt.highest, tt.name, "highest LID")
		slots := tt.blocks * g.Positions()
		seen := make(map[fabric.PortID]bool)
		for lid := fabric.LID(1); lid <= f.MaxLID(); lid++ {
			p := f.LIDPort(lid)
			if p == fabric.NoPort {
				continue
			}
			seen[p] = true
			slot := int(lid)>>tt.lmc - 1
			if slot >= slots {
				slot = int(lid) - (slots+1)<<tt.lmc
			}
			s, exit := delivery(f, p)
			if g.Position(s) != slot%g.Positions() || (exit == fabric.ManagementPort) != (int(lid) >= (slots+1)<<tt.lmc) {
				t.Errorf("%s: LID %d is N(%v)'s", tt.name, lid, g.Coord(s))
			}
		}
		// All end ports, and the hosts of a switch by its ports.
		f.EndPorts(func(p fabric.PortID) {
			if !seen[p] {
				t.Errorf("%s: %s has no LID", tt.name, f.PortName(p))
			}
		})
		for s := range fabric.NodeID(f.NumSwitches()) {
			last := fabric.LID(0)
			for num := fabric.PortNum(1); num <= f.Node(s).NumPorts; num++ {
				if peer := f.Peer(f.Port(s, num)); peer != fabric.NoPort && !f.IsSwitch(f.Owner(peer)) {
					if f.LID(peer) <= last {
						t.Errorf("%s: N(%v) has LID %d on port %d after %d", tt.name, g.Coord(s), f.LID(peer), num, last)
					}
					last = f.LID(peer)
				}
			}
		}
	}
}

// TestLIDsOfPort0 has enhanced ports 0 with an LMC and CAs on no switch.
func TestLIDsOfPort0(t *testing.T) {
	var b fabric.Builder
	for i := range 2 {
		short.Must(b.AddNode(fabric.Node{GUID: fabric.GUID(1 + i), Type: fabric.Switch, NumPorts: 2, EnhancedPort0: i == 1}))(t)
	}
	for i := range 4 {
		short.Must(b.AddNode(fabric.Node{GUID: fabric.GUID(0x10 + 2*i), Type: fabric.CA, NumPorts: 1}))(t)
	}
	for _, c := range [][4]int{{0, 1, 1, 1}, {0, 2, 2, 1}, {1, 2, 3, 1}, {4, 1, 5, 1}} {
		short.Check(t, b.Connect(c[0], fabric.PortNum(c[1]), c[2], fabric.PortNum(c[3]), fabric.Link{}))
	}
	f := short.Must(b.Build())(t)
	dir := make([]Dir, f.NumPorts())
	for i := range dir {
		dir[i] = NoDir
	}
	dir[f.Port(0, 1)], dir[f.Port(1, 1)] = East, West
	g := newGrid(f, []int{2}, []bool{false}, []int16{0, 1}, dir)
	f = short.Must(lft.AssignLIDs(f, lft.LIDOptions{Policy: lft.MeshLIDs, LMC: 1, EnhancedPort0: true, MeshBases: g.LIDs}))(t)
	var got []fabric.LID
	f.EndPorts(func(p fabric.PortID) { got = append(got, f.LID(p)) })
	// Switches in blocks of two, the first with one LID of its block; hosts
	// at 1<<1 and 2<<1; the CAs that only see each other at the end.
	if want := []fabric.LID{6, 8, 2, 4, 10, 12}; fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("LIDs %v, want %v", got, want)
	}
}

// TestLIDsTooMany has a grid on which one switch has more hosts than LIDs, so that the
// rule runs out of LIDs.
func TestLIDsTooMany(t *testing.T) {
	g := grow(t, plot{dims: []int{40, 40}, hosts: func(at int) int {
		if at == 7 {
			return 31
		}
		return 1
	}})
	f, err := lft.AssignLIDs(g.Fabric, lft.LIDOptions{Policy: lft.MeshLIDs, MeshBases: g.LIDs})
	if f != nil || err == nil || !strings.Contains(err.Error(), "need LIDs up to 51200") {
		t.Errorf("%v, want an error that 51200 LIDs are too many", err)
	}
	if lids, err := g.LIDs(nil); lids != nil || err == nil {
		t.Errorf("LIDs of no ports: %v, %v", lids, err)
	}
}
