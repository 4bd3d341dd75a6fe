package sim

import (
	"fmt"
	"slices"
	"testing"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/mesh"
	"github.com/ibweave/ibweave/mft"
)

// grid is a mesh of m columns and n rows with a host on each switch, by coordinates,
// with the LIDs of the mesh papers and dimension-order tables.
type grid struct {
	m, n int
	*fabric.Fabric
	tables *lft.Tables
}

func newGrid(t testing.TB, m, n int) *grid {
	t.Helper()
	f := short.Must(mesh.Generate(mesh.Spec{Dims: []int{m, n}, Hosts: 1}))(t)
	g := &grid{m: m, n: n, Fabric: f}
	lids := make([]fabric.LID, f.NumPorts())
	for s := range m * n {
		lids[g.host(s/n, s%n)] = fabric.LID(s + 1)
		lids[f.PortBase(fabric.NodeID(s))] = fabric.LID(m*n + s + 1)
	}
	g.Fabric = short.Must(f.WithLIDs(lids, make([]uint8, f.NumPorts())))(t)
	g.tables = g.route(true)
	return g
}

// host is the port of the host at x, y.
func (g *grid) host(x, y int) fabric.PortID {
	return g.Peer(g.Port(fabric.NodeID(x*g.n+y), 5))
}

// lid is the LID of the host at x, y.
func (g *grid) lid(x, y int) fabric.LID { return fabric.LID(x*g.n + y + 1) }

// route is XY tables, or YX ones.
func (g *grid) route(xFirst bool) *lft.Tables {
	t := lft.NewTables(g.m*g.n, g.MaxLID())
	for s := range g.m * g.n {
		row := t.Row(fabric.NodeID(s))
		for lid := fabric.LID(1); lid <= g.MaxLID(); lid++ {
			d := int(lid-1) % (g.m * g.n)
			alongX := sign(d/g.n-s/g.n, 1, 3)
			alongY := sign(d%g.n-s%g.n, 2, 4)
			switch {
			case alongX != 0 && (xFirst || alongY == 0):
				row[lid] = alongX
			case alongY != 0:
				row[lid] = alongY
			case int(lid) <= g.m*g.n:
				row[lid] = 5
			default:
				row[lid] = 0
			}
		}
	}
	return t
}

func sign(d int, plus, minus fabric.PortNum) fabric.PortNum {
	switch {
	case d > 0:
		return plus
	case d < 0:
		return minus
	}
	return 0
}

// multicast is a packet to several hosts, by coordinates.
type multicast struct {
	from [2]int
	to   [][2]int
}

// plan is an MLID for each packet, with the union of its paths.
func (g *grid) plan(t testing.TB, packets []multicast) *mft.Plan {
	t.Helper()
	var groups []mft.Group
	for i, p := range packets {
		group := mft.Group{Name: fmt.Sprint(i), Senders: []fabric.PortID{g.host(p.from[0], p.from[1])}}
		for _, to := range p.to {
			group.Receivers = append(group.Receivers, g.host(to[0], to[1]))
		}
		slices.Sort(group.Receivers)
		groups = append(groups, group)
	}
	return short.Must(mft.Union{}.Build(t.Context(), &lft.Routing{Engine: "xy", Fabric: g.Fabric, Tables: g.tables}, groups, mft.Options{}))(t)
}

func mustNew(t testing.TB, net Network, cfg Config, d Driver) *Sim {
	t.Helper()
	return short.Must(New(net, cfg, d))(t)
}

func mustSend(t testing.TB, s *Sim, m Message) {
	t.Helper()
	short.Check(t, s.Send(m))
}

// log keeps all deliveries.
type log struct {
	deliveries []Delivery
	wake       func(s *Sim, id int64)
}

func (l *log) Deliver(_ *Sim, d *Delivery) { l.deliveries = append(l.deliveries, *d) }
func (l *log) Wake(s *Sim, id int64) {
	if l.wake != nil {
		l.wake(s, id)
	}
}

// cycles is a Config in units of 1 ns: a flit of a byte takes 1 ns on a link, and
// nothing else takes any time but a switch.
func cycles(copying Copying, buffer int) Config {
	return Config{
		Mbps: 8000, RoutingDelay: Nanosecond, FlitBytes: 1, BufferFlits: buffer,
		Copying: copying, FullChecks: 1,
	}
}
