package verify

import (
	"math/bits"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/lft/adaptive"
	"github.com/ibweave/ibweave/state"
)

// creditLoops has the credit loops by kind of traffic: sets of channels that
// wait for each other.
type creditLoops struct {
	unicast, multicast, management loopTraffic
}

// loopTraffic is a graph with its credit loops.
type loopTraffic struct {
	graph *dependencyGraph
	loops [][]int32
}

// graphs returns the dependencies that workers found: of unicast traffic, and
// of unicast and management traffic together.
func (p *plan) graphs(w *worker) (unicast, all *dependencyGraph) {
	if p.lanes.tracks() {
		unicast, all = p.unicast.finish(), p.others.finish()
		all.union(unicast)
		return unicast, all
	}
	unicast, all = newGraph(p.channels), newGraph(p.channels)
	for ch := range int32(p.count()) {
		cas, idle := w.own.deps(int(ch))
		copy(unicast.Row(ch), cas)
		for i, set := range cas {
			all.Row(ch)[i] = set | idle[i]
		}
		unicast.used[ch] = w.own.caEnds[ch] || unicast.depends(ch)
		all.used[ch] = unicast.used[ch] || w.own.idleEnds[ch] || all.depends(ch)
	}
	if p.lanes != nil {
		return unicast.copies(p.onVLs), all.copies(p.onVLs)
	}
	return unicast, all
}

// findCreditLoops looks for credit loops of unicast packets, of unicast and multicast packets, and
// of these with packets to and from switches. It keeps the data for a certificate in r.
func (p *plan) findCreditLoops(r *Result, unicast, all *dependencyGraph, mc *mcPlan, w *worker) (l creditLoops) {
	r.CreditLoops.Dependencies = unicast.Count()
	r.CreditLoops.Channels = text.CountIf(unicast.used, func(used bool) bool { return used })
	r.CreditLoops.Cycles = [][]Hop{}
	both := unicast
	fromCAs := p.fromCAs(w)
	if mc != nil {
		r.Multicast = mc.found.counts
		both = mc.graph.dependencyGraph
		all.union(both)
		both.union(unicast)
		r.Multicast.Dependencies = both.Count()
		fromCAs = append(fromCAs, mc.injections()...)
		slices.SortFunc(fromCAs, NumberedChannel.Compare)
		fromCAs = slices.Compact(fromCAs)
	}
	r.CreditLoops.VLs = vlsOf(all, fromCAs)
	l.unicast.graph, l.multicast.graph, l.management.graph = unicast, both, all
	proof := &certificateProof{multicast: mc != nil, fromCAs: fromCAs}
	var ok bool
	if proof.order, ok = all.order(); ok {
		proof.management, proof.graph = true, all
	} else {
		l.management.loops = all.components()
		r.Management.CreditLoops = len(l.management.loops)
		if proof.order, ok = both.order(); ok {
			proof.graph = both
		} else {
			l.unicast.loops = unicast.components()
			r.CreditLoops.Count = len(l.unicast.loops)
			if mc != nil {
				l.multicast.loops = both.components()
				r.Multicast.CreditLoops = len(l.multicast.loops)
			}
		}
	}
	if ok && (mc == nil || mc.copying == Independent && mc.found.counts.Loops == 0) {
		r.proof = proof
	}
	return l
}

// fromCAs lists the channels that leave CAs and routers, with number 0: all of
// them on one VL; with SL-to-VL tables those that packets take into switches.
func (p *plan) fromCAs(w *worker) []NumberedChannel {
	if p.lanes != nil {
		return p.lanes.fromCAs(func(sender int, port fabric.PortID) uint16 {
			if w.flow == nil {
				return 0xffff
			}
			return w.flow.sent[sender] | w.flow.sentBy[port]
		})
	}
	return text.Each(p.f.CAPorts(), func(port fabric.PortID) NumberedChannel {
		return NumberedChannel{GUID: p.f.Node(p.f.Owner(port)).GUID, Port: p.f.Num(port)}
	})
}

// vlsOf counts the VLs of used channels, at least 1.
func vlsOf(g *dependencyGraph, fromCAs []NumberedChannel) int {
	var vls uint16
	for ch, used := range g.used {
		if used {
			_, vl := g.portVL(int32(ch))
			vls |= 1 << vl
		}
	}
	for _, ch := range fromCAs {
		vls |= 1 << ch.VL
	}
	return max(1, bits.OnesCount16(vls))
}

// reportCreditLoops reports a witness of each credit loop, first of unicast, then with multicast,
// then with management; a loop with a channel of a reported one is left out.
func (p *plan) reportCreditLoops(r *Result, l creditLoops, mc *mcPlan, opt Options, s *state.State, certain bool) (err error) {
	var w *searcher
	if len(l.management.loops) > 0 {
		if w, err = newStaticSearcher(s, certain); err != nil {
			return err
		}
	}
	c := NewCollector(&r.Findings, Rules, opt.Witnesses)
	for _, at := range []struct {
		rule string
		loopTraffic
	}{{CreditLoop, l.unicast}, {MulticastCreditLoop, l.multicast}, {ManagementCreditLoop, l.management}} {
		c.addLoops(at.rule, at.loops, func(f *Finding, members []int32) {
			w.creditLoop(f, at.graph, members, l.unicast.graph, mc, cycleBudget/min(len(at.loops), opt.Witnesses))
			if at.rule == CreditLoop {
				r.CreditLoops.Cycles = append(r.CreditLoops.Cycles, f.Witness)
			}
		})
	}
	if mc != nil && mc.copying != Independent {
		mc.reportCopying(r, c, l.multicast.graph)
	}
	c.Close()
	return nil
}

// creditLoop fills in the finding of one strongly connected component.
func (w *searcher) creditLoop(f *Finding, g *dependencyGraph, members []int32, unicast *dependencyGraph, mc *mcPlan, budget int) {
	least := minUnicastCycle
	if mc != nil {
		least = minCycle
	}
	cycle, exact := g.shortestCycle(members, least, budget)
	for i, ch := range cycle {
		f.Witness = append(f.Witness, g.hop(ch, w.holdsStatic(g, ch, cycle[(i+1)%len(cycle)], unicast, mc)))
	}
	f.tellOfCycle(len(members), exact, formatCycle(f.Witness, true, g.vls > 1))
}

// holdsStatic returns a LID whose packets hold channel a of a graph while they wait for b: the
// lowest LID of packets between CA and router ports, or else the lowest MLID, or else the lowest
// LID.
func (w *searcher) holdsStatic(g *dependencyGraph, a, b int32, unicast *dependencyGraph, mc *mcPlan) fabric.LID {
	ofCAs := unicast.has(a, b)
	if mc != nil && !ofCAs {
		if mlid := mc.closes(a, b); mlid != 0 {
			return mlid
		}
	}
	return w.holder(g, a, b, ofCAs).LID
}

// newStaticSearcher makes a searcher for static tables, as adaptive tables that leave no
// choice.
func newStaticSearcher(s *state.State, certain bool) (*searcher, error) {
	only := *s
	only.Adaptive = &adaptive.Tables{Groups: make([][]adaptive.Group, s.Fabric.NumSwitches()), PLFTs: []*adaptive.PLFT{adaptive.NewPLFT(s.Tables)}}
	if s.SL2VL == nil {
		only.PathSLs = nil // SLs make no difference
	}
	p, err := newChoicePlan(&only, Options{}, certain)
	if err != nil {
		return nil, err
	}
	return newSearcher(p, nil, nil, false), nil
}
