package layered

import (
	"context"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/updown"
)

var _ lft.IncrementalEngine = Engine{}

// KeepOrder returns the order that updn keeps. ok is true if its paths between hosts are
// shortest ones.
func (Engine) KeepOrder(f *fabric.Fabric, was []int32) ([]int32, bool) {
	rank, _ := updown.Engine{}.KeepOrder(f, was)
	order, err := updown.OrderOf(&lft.Routing{Fabric: f, Order: rank})
	if err != nil {
		return rank, false
	}
	shortest, err := order.HasShortest(context.Background(), f)
	return rank, shortest && err == nil
}

// keep adapts opt.Previous to fabric f. It updates tables on one lane as updn does, if paths
// between hosts are still shortest paths afterwards. It keeps tables on several lanes if all
// switches have the same cables (only hosts came, went or moved) and the greatest load is at
// most opt.Rebalance times that of new tables. Otherwise it routes from scratch, and a note
// says why.
func (e Engine) keep(ctx context.Context, f *fabric.Fabric, opt lft.Options) (*lft.Routing, error) {
	p := opt.Previous
	fromScratch := func(why string) (*lft.Routing, error) {
		opt := opt
		opt.Previous = nil
		r, err := e.Route(ctx, f, opt)
		if err == nil {
			r.Notes = append(r.Notes, "routed from scratch: "+why)
		}
		return r, err
	}
	if p.SL2VL == nil && p.PathSLs == nil {
		if p.Order == nil || len(opt.Roots) > 0 {
			return fromScratch("there is no order of the switches to keep")
		}
		r, err := lft.Reroute(ctx, e, f, opt)
		switch {
		case err != nil:
		case r.Kept:
			r.Notes = append(r.Notes, describeLanes(1))
		default:
			r.Notes = append(r.Notes, "routed from scratch: on the lane that there was some paths would be longer than a shortest path, or the loads too high")
		}
		return r, err
	}
	if p.SL2VL == nil || p.PathSLs == nil || opt.VLs > 0 && p.SL2VL.VLs() > opt.VLs {
		return fromScratch("it has other virtual lanes")
	}
	if !sameCables(p.Fabric, f) {
		return fromScratch("the cables between switches have changed, and virtual lanes are for all paths together")
	}
	r, err := keepLanes(p, f)
	if err != nil {
		return nil, err
	}
	most := lft.GreatestLoad(f, r.Tables)
	tooBusy := func(least uint64) bool { return float64(most) > opt.RebalanceFactor()*float64(least) }
	if tooBusy(max(lft.BoundLoad(f), lft.GreatestLoad(p.Fabric, p.Tables))) {
		scratch, err := fromScratch("the greatest load has grown too much")
		if err != nil || tooBusy(lft.GreatestLoad(f, scratch.Tables)) {
			return scratch, err
		}
	}
	r.Engine, r.Order, r.Kept = e.Name(), p.Order, true
	last := fabric.SL(0)
	for _, s := range f.Switches() {
		last = max(last, slices.Max(r.PathSLs.Row(s)))
	}
	r.Notes = []string{describeLanes(int(last) + 1)}
	return r, nil
}

// sameCables returns true if two fabrics have the same switches with the same cables
// between them, rates included.
func sameCables(f, g *fabric.Fabric) bool {
	if f.NumSwitches() != g.NumSwitches() {
		return false
	}
	for _, s := range f.Switches() {
		a, to := f.SwitchLinks(s)
		b, same := g.SwitchLinks(s)
		if f.Node(s).GUID != g.Node(s).GUID || f.PortBase(s) != g.PortBase(s) || !slices.Equal(a, b) || !slices.Equal(to, same) {
			return false
		}
		for _, p := range a {
			if f.Peer(p) != g.Peer(p) || f.Link(p) != g.Link(p) {
				return false
			}
		}
	}
	return true
}

// keepLanes makes tables and path SLs for a fabric with the same cables between switches.
// A LID that is now at another port gets the paths, and so the lanes, of a LID that was at
// the same switch, or of the switch's own LID.
func keepLanes(p *lft.Routing, f *fabric.Fabric) (*lft.Routing, error) {
	n := f.NumSwitches()
	r := &lft.Routing{Fabric: f, Tables: lft.NewTables(n, f.MaxLID()), PathSLs: lft.NewPathSLs(n, f.MaxLID())}
	was := p.Fabric
	like := make([]fabric.LID, int(f.MaxLID())+1) // by LID: the old LID whose paths it gets, 0: none
	for lid, port := range f.LIDPorts() {
		at := f.Attachment(port)
		if at == fabric.NoPort {
			continue
		}
		if lid <= int(was.MaxLID()) && was.Attachment(was.LIDPort(fabric.LID(lid))) == at {
			like[lid] = fabric.LID(lid)
			continue
		}
		t := f.Owner(at)
		like[lid] = was.LID(was.PortBase(t))
		var lids []fabric.LID
		for _, host := range was.HostsOn(t) {
			lids = slices.AppendSeq(lids, was.LIDs(host))
		}
		if len(lids) > 0 {
			like[lid] = lids[lid%len(lids)]
		}
		r.Tables.Row(t)[lid] = f.Num(at)
	}
	for s := range fabric.NodeID(n) {
		row, old, given := r.Tables.Row(s), p.Tables.Row(s), p.PathSLs.Given(s)
		sls := make([]fabric.SL, len(row))
		for lid, other := range like {
			if other == 0 {
				continue
			}
			sls[lid] = given[other]
			if row[lid] == fabric.NoPath {
				row[lid] = old[other]
			}
		}
		r.PathSLs.SetRow(sls, s)
	}
	var err error
	r.SL2VL, err = lft.IdentitySL2VL(f, p.SL2VL.VLs())
	return r, err
}
