package mesh

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/graph"
	"github.com/ibweave/ibweave/lft"
)

// maxRepairVLs is how many VLs a repair takes at most by default: what most
// switches have.
const maxRepairVLs = 8

// repair completes base, the XY routing of a grid with missing cables and
// switches. A broken entry is NoPath: XY's path from there is broken. All other
// entries stay. Every broken entry gets the first hop of a detour, if cables
// that Options.NoWrap allows lead to the LID. repair changes base and returns
// it; if nothing is broken, or nothing can be mended, base is unchanged.
//
// # The turn rule
//
// A turn is the step of a packet at a switch from one cable to another: straight
// on, or into another direction, but never back. A packet that makes a turn
// holds a buffer of the first cable while it waits for one of the second. So the
// turns in use are the edges of the channel dependency graph, and a credit loop
// is a cycle of turns (Dally and Seitz, IEEE Trans. Computers 1987). In XY no
// path turns from a later dimension into an earlier one. In a repair:
//
//   - On XY's VL every turn that an existing XY path makes is allowed.
//   - A detour may make any other turn, as long as all turns made on its VL can be put in an order
//     in which every path makes them: a turn that closes a cycle is refused, now and later. A
//     missing cable breaks the cycles around it, so most turns next to it are free.
//   - A path that finds no detour on one VL takes another, on which only detours (with their XY
//     part) count: SL k is VL k, for the whole path.
//
// A topological order of all turns on each VL is kept up to date while turns are
// added (see waits), so the search never has to undo a credit loop. Paths begin
// at all switches, which includes their own port 0, so the proof holds for
// management traffic as well. Channels from and to hosts come first and last and
// are in no cycle. Parallel cables count as one way: cycles through them would
// be cycles of ways.
//
// # Detours
//
// Forwarding is by destination: a detour to a LID is a hop from a switch with a
// broken entry to one that has an entry already, XY's or a detour's, and then
// follows that switch's path. So the detours to one destination are trees. They
// grow from the switches that XY still connects, by the number of hops, then by
// position. A hop that needs a new turn is taken only if it saves more than
// newTurn hops: each new turn forbids others, and the turns next to what is
// missing serve all paths that come by.
//
// Whether one VL is enough depends on which turns come first, and sometimes
// nothing helps. A mesh of 3x3 without its middle switch is a ring of eight;
// each way round has two corners where XY does not turn, of which one must stay
// forbidden; the two ways never share such a corner; so some pair has a
// forbidden corner on both. To find out is hard in general, so the search is
// repeated: with different preferred turns (those with one direction in common,
// which gives the turn models of Glass and Ni, J. ACM 1994, away from faults),
// and each time first with the destination at which it failed. The fewest VLs
// win; a last round shortens detours on these VLs. Work, not time, bounds the
// number of rounds, so that the result is always the same.
//
// If XY needs no VLs of its own and detours need only one VL, the result has no
// SL-to-VL tables: any subnet manager that loads tables from a file can use it.
// If XY has VLs for rings, these and their SLs stay, and detours take VLs and
// SLs above them.
//
// Errors: a *lft.DomainError that names a pair if there are too few VLs or SLs,
// and ctx's. One round takes O(switches x broken entries) at worst, in practice
// little more than O(switches^2) for the columns and O(1) for a broken entry.
func repair(ctx context.Context, g *Grid, base *lft.Routing, opt lft.Options) (*lft.Routing, error) {
	r, err := newRepairer(g, base, opt)
	if err != nil {
		return nil, err
	}
	if r.broken == 0 {
		return base, nil
	}
	if r.limit < 1 {
		return nil, r.domain(opt, "rings take %d VLs and %d SLs, which leaves none for detours", r.firstVL, r.firstSL)
	}
	best, err := r.search(ctx)
	if err != nil {
		return nil, err
	}
	if best == nil {
		return nil, r.domain(opt, "with %d data VLs not all of %d broken paths between switches find a way round without a credit loop: none from %s to %s",
			r.firstVL+r.limit, r.broken, r.name(r.stuckFrom), r.name(r.stuckTo))
	}
	r.write(base, best)
	return base, nil
}

func (r *repairer) domain(opt lft.Options, format string, args ...any) error {
	reason := fmt.Sprintf("repair: "+format, args...)
	switch {
	case opt.VLs > 0 && opt.VLs < maxRepairVLs:
		reason += "; more VLs may do, or updn, which takes one"
	case r.firstVL > 0:
		reason += "; without the cables that close rings (no-wrap) it may do, or updn, which takes one"
	default:
		reason += "; updn takes one"
	}
	return &lft.DomainError{Engine: XY{}.Name(), Reason: reason}
}

func (r *repairer) name(s int32) fabric.Name { return r.g.Fabric.Name(r.node[s]) }

// column has, for one destination switch, the entries of all switches for the LIDs on it;
// XY routes all of these the same way.
type column struct {
	to     int32 // the switch
	lids   []fabric.LID
	xy     []Dir   // by switch: XY's direction, NoDir if broken and at the destination
	broken []int32 // switches without an entry, but with cables to the destination
}

// repairer finds detours.
type repairer struct {
	*arcs
	g       *Grid
	columns []column // sorted by the position of the destination
	broken  int      // how many entries are broken; a column's LIDs count once
	shared  bool     // detours may take XY's own VL
	turns   *waits   // XY's turns; none if not shared
	order   []int32  // all arcs, in a topological order of the turns
	firstVL int      // for detours
	firstSL int
	limit   int // greatest number of VLs for detours, with XY's if shared

	tree
	stuckFrom, stuckTo int32
}

func newRepairer(g *Grid, base *lft.Routing, opt lft.Options) (*repairer, error) {
	a := newArcs(g, opt.NoWrap)
	r := &repairer{arcs: a, g: g, shared: base.SL2VL == nil, turns: newWaits(a, 1)}
	r.readColumns(base.Tables)
	if r.shared {
		r.readTurns()
	} else {
		r.firstVL = base.SL2VL.VLs()
		r.firstSL = firstFreeSL(base.PathSLs)
	}
	if r.order = r.turns.sorted(); len(r.order) < r.turns.channels() {
		return nil, errors.New("mesh: the tables to repair have a credit loop")
	}
	r.limit = min(cmp.Or(opt.VLs, maxRepairVLs)-r.firstVL, lft.NumSLs-r.firstSL)
	n := len(r.node)
	r.tree = tree{way: make([]Dir, n), length: make([]int32, n), clear: make([]uint16, n)}
	return r, nil
}

// firstFreeSL returns 1 more than the highest SL of any path.
func firstFreeSL(sls *lft.PathSLs) int {
	if sls == nil {
		return 1
	}
	free := 0
	for s := range fabric.NodeID(sls.Switches()) {
		for _, sl := range sls.Row(s) {
			free = max(free, int(sl)+1)
		}
	}
	return free
}

// readColumns sets columns, with the broken entries of each.
func (r *repairer) readColumns(t *lft.Tables) {
	f := r.g.Fabric
	lids := make([][]fabric.LID, len(r.node))
	for lid, port := range f.LIDPorts() {
		if p := f.Attachment(port); p != fabric.NoPort {
			to := r.index[f.Owner(p)]
			lids[to] = append(lids[to], fabric.LID(lid))
		}
	}
	for to, list := range lids {
		if len(list) > 0 {
			r.columns = append(r.columns, column{to: int32(to), lids: list, xy: make([]Dir, len(r.node))})
		}
	}
	component, _ := graph.Components(len(r.node), r.neighbors)
	for s := range int32(len(r.node)) {
		for i := range r.columns {
			c := &r.columns[i]
			c.xy[s] = NoDir
			if s == c.to {
				continue
			}
			if out, _ := t.Step(f, r.node[s], c.lids[0]); out != fabric.NoPort {
				c.xy[s] = r.g.Dir(out)
			} else if component[s] == component[c.to] {
				c.broken = append(c.broken, s)
				r.broken++
			}
		}
	}
}

// readTurns adds XY's turns to turns.
func (r *repairer) readTurns() {
	for i := range r.columns {
		c := &r.columns[i]
		for s, d := range c.xy {
			if d == NoDir {
				continue
			}
			a := r.arc(int32(s), d)
			if v := r.head[a]; v != c.to {
				r.turns.add(a, c.xy[v], 0)
			}
		}
	}
}

// write puts detours into base.
func (r *repairer) write(base *lft.Routing, found *detours) {
	used := r.writePorts(base.Tables, found)
	if r.shared && used <= 1 {
		return
	}
	if base.PathSLs == nil {
		base.PathSLs = lft.NewPathSLs(len(r.node), base.Tables.MaxLID())
	}
	r.writeSLs(base.PathSLs, found)
	f := r.g.Fabric
	if r.shared {
		base.SL2VL = lft.NewSL2VL(f, lft.IdentityVLs(used))
		return
	}
	for _, out := range f.Channels() {
		m := *base.SL2VL.At(0, out) // XY's maps depend on the output port only
		for i := range used {
			m[r.firstSL+i] = fabric.VL(r.firstVL + i)
		}
		base.SL2VL.SetOut(out, m)
	}
}

// writePorts writes the detours' entries, and returns how many VLs they take.
func (r *repairer) writePorts(t *lft.Tables, found *detours) (vls int) {
	turn := make([]int, len(r.head)) // by arc: number of LIDs so far, for taking parallel links in turn
	for i, hops := range found.hops {
		for _, h := range hops {
			vls = max(vls, int(h.vl)+1)
			row, ports := t.Row(r.node[h.from]), r.g.Ports(r.node[h.from], h.way)
			a := r.arc(h.from, h.way)
			for _, lid := range r.columns[i].lids {
				row[lid] = r.g.Fabric.Num(ports[turn[a]%len(ports)])
				turn[a]++
			}
		}
	}
	return vls
}

func (r *repairer) writeSLs(sls *lft.PathSLs, found *detours) {
	rows := make([][]fabric.SL, len(r.node))
	for i, hops := range found.hops {
		for _, h := range hops {
			if r.shared && h.vl == 0 {
				continue
			}
			if rows[h.from] == nil {
				rows[h.from] = slices.Clone(sls.Row(r.node[h.from]))
			}
			for _, lid := range r.columns[i].lids {
				rows[h.from][lid] = fabric.SL(r.firstSL + int(h.vl))
			}
		}
	}
	for s, row := range rows {
		if row != nil {
			sls.SetRow(row, r.node[s])
		}
	}
}
