package move

import (
	"slices"

	"github.com/ibweave/ibweave/audit/drain"
	"github.com/ibweave/ibweave/compile"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/graph"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/verify"
)

// Drained tables still lead to the LIDs of ports whose cables are about to move. If an entry for
// such a LID names a switch port that gets another cable, packets take this cable once it is there,
// and may come back.
//
// Without these entries no packet loops, whichever cables have been moved. The other entries for
// such a LID form a tree on the old cables, and none names a new cable. Packets for other LIDs use
// only cables that stay. No packet returns to a switch all of whose cables move, if this gets its
// new entries before the others.

// holder changes tables so that no packet loops while cables are moved.
type holder struct {
	r    *lft.Routing   // on the old cables
	rest *lft.Routing   // on the cables that stay
	then *fabric.Fabric // with the new cables
	// ports lists the switch ports that have no cable in rest and lead to a switch in then.
	ports  []fabric.PortID
	next   *lft.Tables // entries that switches without a cable in rest get before the others
	strong graph.Strong[int32]
	heads  []int32
}

func newHolder(r, rest *lft.Routing, then *fabric.Fabric, next *lft.Tables) *holder {
	h := &holder{r: r, rest: rest, then: then, next: next}
	for p := range then.PortBase(fabric.NodeID(then.NumSwitches())) {
		if then.PeerSwitch(p) != fabric.NoNode && rest.Fabric.Peer(p) == fabric.NoPort {
			h.ports = append(h.ports, p)
		}
	}
	return h
}

// hold returns tables under which no packet loops while the cables of held are changed to those of
// then, and switches without a cable in rest get their entries of next. held is drain.Overlay of
// rest and from.
//
// Packets for a LID that could loop take the path to a neighbour of its port on
// the same switch. If that is not safe, their entries are taken out and cuts
// is true: ports are cut off before their cables are unplugged. The error has
// a drain.Reason if packets could loop for a LID whose port keeps its cable;
// else it is that of verify.Check.
func (p *planner) hold(held, rest *compile.Result, from *lft.Routing, then *fabric.Fabric, next *lft.Tables) (r *compile.Result, cuts bool, err error) {
	x := held.Routing.Fabric
	if held.Verify.Verdict != verify.VerdictErrors {
		h := newHolder(held.Routing.On(x), rest.Routing, then, next)
		changed, cuts, safe := h.mend(true)
		if !changed {
			return held, false, nil
		}
		r, err := drain.Judge(p.ctx, held.Engine, h.r)
		if err != nil {
			return nil, false, err
		}
		if safe && r.Verify.CreditLoops.Count == 0 && (cuts || r.Verify.Verdict != verify.VerdictErrors) {
			return r, cuts, nil
		}
	}
	h := newHolder(rest.Routing.On(x), rest.Routing, then, next)
	for _, s := range x.Switches() {
		if h.isApart(s) {
			copy(h.r.Tables.Row(s), from.Tables.Row(s)) // for packets that still reach s
		}
	}
	_, _, safe := h.mend(false)
	r, err = drain.Judge(p.ctx, held.Engine, h.r)
	if err == nil && (!safe || r.Verify.CreditLoops.Count > 0) {
		err = drain.Refuse("no tables were found under which the cables can be moved")
	}
	return r, true, err
}

// mend changes the entries for LIDs whose packets could loop. If detour is
// set, it tries follow before it takes entries out. cuts is true if a port can
// no longer be reached, and safe is false if packets could loop for a LID
// whose port keeps its cable.
func (h *holder) mend(detour bool) (changed, cuts, safe bool) {
	for lid := fabric.LID(1); lid <= h.r.Tables.MaxLID(); lid++ {
		if !h.loops(lid) {
			continue
		}
		if h.rest.Fabric.LIDPort(lid) != fabric.NoPort {
			return true, cuts, false
		}
		changed = true
		if !detour || !h.follow(lid) || h.loops(lid) {
			for _, p := range h.ports {
				if row := h.r.Tables.Row(h.then.Owner(p)); row[lid] == h.then.Num(p) {
					row[lid] = fabric.NoPath
				}
			}
			cuts = cuts || h.r.Fabric.LIDPort(lid) != fabric.NoPort
		}
	}
	return changed, cuts, true
}

// uses returns true if an entry for one of the LIDs from first to last names one of ports.
func (h *holder) uses(first, last fabric.LID) bool {
	return slices.ContainsFunc(h.ports, func(p fabric.PortID) bool {
		return slices.Contains(h.r.Tables.Row(h.then.Owner(p))[first:last+1], h.then.Num(p))
	})
}

// loops returns true if packets for a LID can loop while each cable is an old or a new one, and
// switches that are apart have the entry of r or of next. O(switches).
func (h *holder) loops(lid fabric.LID) bool {
	return h.uses(lid, lid) && h.strong.Find(h.then.NumSwitches(), func(i int32) []int32 {
		h.heads = h.heads[:0]
		s := fabric.NodeID(i)
		entry := h.r.Tables.Row(s)[lid]
		h.add(h.r.Fabric, s, entry)
		h.add(h.then, s, entry)
		if h.isApart(s) && lid <= h.next.MaxLID() {
			h.add(h.then, s, h.next.Row(s)[lid])
		}
		return h.heads
	}) > 0
}

// add appends to heads the switch to which port entry of switch s leads in f, if it leads to
// a switch.
func (h *holder) add(f *fabric.Fabric, s fabric.NodeID, entry fabric.PortNum) {
	if entry <= f.Node(s).NumPorts {
		if to := f.PeerSwitch(f.Port(s, entry)); to != fabric.NoNode {
			h.heads = append(h.heads, int32(to))
		}
	}
}

// isApart returns true for a switch that keeps no cable.
func (h *holder) isApart(s fabric.NodeID) bool {
	return h.rest.Fabric.LID(h.rest.Fabric.PortBase(s)) == 0
}

// follow sends packets for a LID over cables that stay, to the switch that its port is on. It
// copies the entries for an end port that stays on the switch, else for the switch itself. It
// returns false, and changes nothing, if the switch is apart.
func (h *holder) follow(lid fabric.LID) bool {
	x, f := h.r.Fabric, h.rest.Fabric
	port := x.LIDPort(lid)
	at := x.Attachment(port)
	if at == fabric.NoPort || h.isApart(x.Owner(at)) {
		return false
	}
	like := f.LID(f.PortBase(x.Owner(at)))
	if ends := f.EndPortsOn(x.Owner(at)); len(ends) > 0 {
		like = f.LID(ends[0]) + (lid-x.LID(port))&(1<<f.LMC(ends[0])-1)
	}
	for s := range fabric.NodeID(f.NumSwitches()) {
		if h.isApart(s) {
			continue
		}
		h.r.Tables.Row(s)[lid] = h.rest.Tables.Row(s)[like]
		if h.r.PathSLs != nil && h.rest.PathSLs != nil {
			row := slices.Clone(h.r.PathSLs.Given(s))
			row[lid] = h.rest.PathSLs.Given(s)[like]
			h.r.PathSLs.SetRow(row, s)
		}
	}
	h.r.Tables.Row(x.Owner(at))[lid] = x.Num(at)
	return true
}
