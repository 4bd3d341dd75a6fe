// Package verify proves or disproves forwarding tables: does every port reach
// every LID, do packets go round, and can the channels they hold wait for each
// other in a circle. It works on the tables alone and knows no engine. Clean
// tables come with a Certificate that anybody can check again in linear time.
//
// A destination LID makes the switches a forest: each has one entry, which
// leads to one next switch. So pairs of ports need not be walked one by one.
// The forest of each LID is put in order once, and counts of sources flow down
// it: O(switches x LIDs) in all, whatever the number of ports.
//
// The channel dependency graph is that of Dally and Seitz (Deadlock-free
// message routing in multiprocessor interconnection networks, IEEE Trans.
// Computers 1987), of the pairs that arrive, from the source's channel into
// the first switch on.
package verify

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/lft"
)

// Options are the choices of Check.
type Options struct {
	// SL2VL is the SL-to-VL tables of the fabric; nil puts everything on one
	// VL.
	SL2VL *lft.SL2VL
	// PathSLs is the SL of each path; nil means that any path may have any
	// SL. It says nothing without SL2VL.
	PathSLs *lft.PathSLs
	// Workers is how many goroutines share the work; 0 for one on each CPU.
	// The result does not depend on it.
	Workers int
	// Witnesses bounds the credit loops that are shown; 0 for
	// DefaultWitnesses. All are counted.
	Witnesses int
	// Findings bounds the findings for each rule; 0 for DefaultFindings. One
	// more says how many were left out.
	Findings int
	// Progress, when set, is told how many blocks of LIDs are done, of all.
	// It is called from several goroutines.
	Progress func(done, total int)
}

// The defaults of Options.
const (
	DefaultWitnesses = 16
	DefaultFindings  = 50
)

// Check examines the tables t of fabric f, in which every switch has a row by
// its NodeID, for all LIDs of f. It takes O(switches x LIDs) time, with SL-to-VL
// tables for each SL that is in use. Besides what it needs for each channel it keeps up
// to five bytes for each pair of switches, and less in fabrics where that
// would be more than 256 MB.
//
// It returns an error when the tables are not of this fabric and when ctx
// ends; whatever is wrong with the tables is in the Result.
func Check(ctx context.Context, f *fabric.Fabric, t *lft.Tables, opt Options) (*Result, error) {
	if t.Switches() != f.NumSwitches() {
		return nil, fmt.Errorf("tables of %d switches for a fabric of %d", t.Switches(), f.NumSwitches())
	}
	if len(f.CAPorts()) > maxSources {
		return nil, fmt.Errorf("%d CA ports, at most %d can be checked: %w", len(f.CAPorts()), maxSources, fabric.ErrTooLarge)
	}
	if s := opt.SL2VL; s != nil && s.Fabric().NumPorts() != f.NumPorts() {
		return nil, fmt.Errorf("SL-to-VL tables of %d ports for a fabric of %d", s.Fabric().NumPorts(), f.NumPorts())
	}
	if s := opt.PathSLs; s != nil && s.Switches() != f.NumSwitches() {
		return nil, fmt.Errorf("path SLs of %d switches for a fabric of %d", s.Switches(), f.NumSwitches())
	}
	if opt.Workers <= 0 {
		opt.Workers = runtime.GOMAXPROCS(0)
	}
	if opt.Witnesses <= 0 {
		opt.Witnesses = DefaultWitnesses
	}
	if opt.Findings <= 0 {
		opt.Findings = DefaultFindings
	}
	p := newPlan(f, t)
	w, err := p.run(ctx, opt)
	if err != nil {
		return nil, err
	}
	r := &Result{
		Fabric:   FabricCounts{Switches: p.n, CAPorts: len(f.CAPorts()), Links: f.NumLinks(), MaxLID: f.MaxLID()},
		Findings: []Finding{},
	}
	p.summarize(r, w)
	var d *waits
	if opt.SL2VL == nil {
		d = p.waits(w)
	} else {
		l := newLanes(p, opt.SL2VL, opt.PathSLs)
		v, err := l.run(ctx, opt.Workers)
		if err != nil {
			return nil, err
		}
		d = l.waits(v)
		l.summarizeLosses(r, v, opt)
	}
	loops, mgmtLoops := p.judge(r, d)
	p.report(r, w, opt)
	p.reportCreditLoops(r, d, loops, mgmtLoops, opt)
	r.settle()
	return r, nil
}

// run checks all blocks of LIDs, and returns one worker with what all found.
func (p *plan) run(ctx context.Context, opt Options) (*worker, error) {
	blocks := int(max(p.f.MaxLID(), p.t.MaxLID()))/lft.BlockSize + 1
	workers := make([]*worker, max(1, min(opt.Workers, blocks)))
	var next, done atomic.Int32
	group, ctx := errgroup.WithContext(ctx)
	for i := range workers {
		group.Go(func() error {
			w := newWorker(p)
			workers[i] = w
			for {
				b := int(next.Add(1)) - 1
				if b >= blocks {
					return nil
				}
				if err := ctx.Err(); err != nil {
					return err
				}
				w.block(b)
				if n := int(done.Add(1)); opt.Progress != nil {
					opt.Progress(n, blocks)
				}
			}
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	for _, w := range workers[1:] {
		workers[0].merge(w)
	}
	return workers[0], nil
}

// merge takes over what another worker found.
func (w *worker) merge(o *worker) {
	for at := 0; at < w.count()*w.stride; at += w.stride {
		w.records[at] += o.records[at]
		for i := at + 1; i < at+w.stride; i++ {
			w.records[i] |= o.records[i]
		}
	}
	for i, set := range o.idle {
		w.idle[i] |= set
	}
	for ch, used := range o.used {
		w.used[ch] = w.used[ch] || used
	}
	for h, n := range o.delivered {
		w.delivered[h] += n
	}
	w.nonMinimal += o.nonMinimal
	w.stretch.consider(o.stretch)
	w.troubles = append(w.troubles, o.troubles...)
	w.stale = append(w.stale, o.stale...)
	for key, n := range o.dead {
		if m, ok := w.dead[key]; ok {
			n.lids += m.lids
			n.first = min(n.first, m.first)
		}
		w.dead[key] = n
	}
}

// summarize fills in the numbers of pairs and routes.
func (p *plan) summarize(r *Result, w *worker) {
	var caLIDs, switchLIDs int64
	for _, port := range p.f.CAPorts() {
		caLIDs += p.lids(port)
	}
	for s := range p.n {
		switchLIDs += p.lids(p.f.PortBase(fabric.NodeID(s)))
	}
	caPorts, switches := int64(len(p.f.CAPorts())), int64(p.n)
	r.Unicast.Pairs = (caPorts - 1) * caLIDs
	r.Management.Pairs = switches*caLIDs + caPorts*switchLIDs + (switches-1)*switchLIDs
	for i, port := range p.f.CAPorts() {
		if p.f.CASwitches()[i] != fabric.NoNode {
			continue
		}
		// A cable between two CAs reaches the LIDs at its other end only.
		peer := p.lids(p.f.Peer(port))
		w.delivered[0] += peer
		r.Unicast.Unreachable += caLIDs - p.lids(port) - peer
		r.Management.Unreachable += switchLIDs
	}
	for i := range w.troubles {
		t := &w.troubles[i]
		r.Unicast.Unreachable += t.unreachable.pairs + t.misdelivered.pairs
		r.Unicast.Misdelivered += t.misdelivered.pairs
		r.Unicast.Loops += t.loops.pairs
		r.Management.Unreachable += t.mgmtUnreachable.pairs
		r.Management.Loops += t.mgmtLoops.pairs
	}
	for h, n := range w.delivered {
		if n > 0 {
			r.Unicast.MaxHops = h
		}
	}
	r.Unicast.HopHistogram = w.delivered[:r.Unicast.MaxHops+1]
	r.Unicast.NonMinimal = w.nonMinimal

	var sum int64
	links := 0
	most := fabric.NoPort
	for s := range p.n {
		ports, _ := p.f.SwitchLinks(fabric.NodeID(s))
		for _, port := range ports {
			links++
			routes := int64(w.records[int(port)*p.vls*w.stride])
			sum += routes
			if routes > r.Balance.MaxRoutes {
				r.Balance.MaxRoutes, most = routes, port
			}
		}
	}
	if links > 0 {
		r.Balance.MeanRoutes = float64(sum) / float64(links)
	}
	if most != fabric.NoPort {
		hop := p.hop(int32(most)*int32(p.vls), 0)
		r.Balance.MaxLink = &hop
	}
}

// lids is the number of LIDs that a port answers to.
func (p *plan) lids(port fabric.PortID) int64 {
	if p.f.LID(port) == 0 {
		return 0
	}
	return 1 << p.f.LMC(port)
}

// waits is what packets hold and wait for: unicast packets, and those together
// with management packets.
type waits struct {
	unicast, all         *graph
	usedUnicast, usedAll []bool // by channel
	// closes is the lowest LID whose packets hold channel a while they wait
	// for b; unicast says that only packets between CA and router ports count.
	closes func(a, b int32, unicast bool) fabric.LID
}

// waits takes the dependencies on one VL out of the records.
func (p *plan) waits(w *worker) *waits {
	n := p.count()
	d := &waits{
		unicast:     &graph{channels: p.channels, deps: make([]uint64, n*p.words)},
		all:         &graph{channels: p.channels, deps: make([]uint64, n*p.words)},
		usedUnicast: make([]bool, n),
		usedAll:     make([]bool, n),
		closes:      p.closes,
	}
	for ch := range n {
		copy(d.unicast.row(int32(ch)), w.records[ch*w.stride+1:(ch+1)*w.stride])
		d.usedUnicast[ch] = w.records[ch*w.stride] > 0
		d.usedAll[ch] = d.usedUnicast[ch] || w.used[ch]
	}
	for i := range d.all.deps {
		d.all.deps[i] = d.unicast.deps[i] | w.idle[i]
	}
	for ch := range n {
		d.usedAll[ch] = d.usedAll[ch] || slices.ContainsFunc(d.all.row(int32(ch)), func(set uint64) bool { return set != 0 })
	}
	return d
}

// judge looks for credit loops, and keeps what a certificate needs.
func (p *plan) judge(r *Result, d *waits) (loops, mgmtLoops [][]int32) {
	unicast, all := d.unicast, d.all
	r.CreditLoops.VLs = unicast.vls
	r.CreditLoops.Cycles = [][]Hop{}
	r.CreditLoops.Dependencies = unicast.dependencies()
	for _, used := range d.usedUnicast {
		if used {
			r.CreditLoops.Channels++
		}
	}
	if order, ok := all.order(); ok {
		r.proof = &certificateProof{management: true, graph: all, order: order, used: d.usedAll}
		return nil, nil
	}
	mgmtLoops = all.components()
	r.Management.CreditLoops = len(mgmtLoops)
	if order, ok := unicast.order(); ok {
		r.proof = &certificateProof{management: false, graph: unicast, order: order, used: d.usedUnicast}
		return nil, mgmtLoops
	}
	loops = unicast.components()
	r.CreditLoops.Count = len(loops)
	return loops, mgmtLoops
}

// hop names a channel, and a LID that packets on it are for.
func (c *channels) hop(ch int32, lid fabric.LID) Hop {
	port, vl := c.portVL(ch)
	n := c.f.Node(c.f.Owner(port))
	return Hop{Switch: n.GUID, Name: n.Description, Port: c.f.Num(port), VL: vl, LID: lid}
}
