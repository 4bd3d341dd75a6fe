package verify

import (
	"context"
	_ "embed"
	"fmt"
	"math/bits"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/graph"
	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/lft/adaptive"
)

// reportTroubles adds findings of pairs whose packets are lost or loop.
func (p *choicePlan) reportTroubles(r *Result, list []trouble) {
	c := NewCollector(&r.Findings, AdaptiveRules, p.opt.Findings)
	defer c.Close()
	w := newSearcher(p, nil, nil, false)
	n := r.Adaptive
	for _, t := range list {
		for i, at := range []struct {
			rule  string
			pairs *int64
			loop  bool
		}{
			tallyDead: {AdaptiveDeadEnd, &n.DeadEnds, false}, tallyLoop: {AdaptiveLoop, &n.Loops, true},
			tallyManagementDead: {ManagementAdaptiveDeadEnd, &n.ManagementDeadEnds, false},
			tallyManagementLoop: {ManagementAdaptiveLoop, &n.ManagementLoops, true},
		} {
			tally := t.tallies[i]
			if tally.pairs == 0 {
				continue
			}
			*at.pairs += tally.pairs
			c.Add(at.rule, tally.pairs, func(f *Finding) {
				f.LID = t.lid
				if at.loop {
					w.describeLoop(f, tally)
				} else {
					w.describeDeadEnd(f, tally)
				}
			})
		}
	}
}

// aim makes lid the only LID to search. It returns false if it has no destination.
func (w *searcher) aim(lid fabric.LID) bool {
	d, ok := destination(w.f, lid)
	w.dests = []dest{d}
	return ok
}

// searchFor searches class by class, for the LID of a finding, until packets of a sender reach a
// node for which function is returns true. It returns the path to the nearest such node.
func (w *searcher) searchFor(f *Finding, from *senderGroup, is func(x int32) bool) (way []int32) {
	w.aim(f.LID)
	for _, w.c = range w.classes {
		if !w.sends(from, w.c, f.LID) {
			continue
		}
		w.trace()
		s := graph.NewSearch[int32](len(w.c.nodes))
		s.Run(w.next(), w.c.node[from.in])
		for _, x := range s.Order {
			if is(x) {
				return s.Path(x)
			}
		}
	}
	return nil
}

// describeDeadEnd fills in a finding of lost packets.
func (w *searcher) describeDeadEnd(f *Finding, t tally) {
	from := &w.senders[t.from]
	way := w.searchFor(f, from, func(x int32) bool { return w.nodes.lost[x] })
	for i, x := range way[:len(way)-1] {
		f.Witness = append(f.Witness, w.step(x, way[i+1]))
	}
	last := way[len(way)-1]
	port, fate := w.fate(last)
	f.Witness = append(f.Witness, w.hopFrom(last, port))
	f.Switch = f.Witness[len(f.Witness)-1].Switch
	f.Message = fmt.Sprintf("%s: packets from %s can be lost; those from %s%s end at %s, which %s",
		lidName(w.f, f.LID), text.Count(t.pairs, "port", "ports"), sourceName(w.f, from.ports[0]), w.slName(),
		switchName(w.f, fabric.NodeID(w.c.nodes[last].s)), fate)
}

// describeLoop fills in a finding of packets that loop.
func (w *searcher) describeLoop(f *Finding, t tally) {
	from := &w.senders[t.from]
	way := w.searchFor(f, from, func(x int32) bool { return w.nodes.cycles.Of[x] >= 0 })
	component := w.nodes.cycles.Of[way[len(way)-1]]
	var members []int32
	for x, of := range w.nodes.cycles.Of {
		if of == component {
			members = append(members, int32(x))
		}
	}
	cycle, _ := graph.ShortestCycle(members, w.next(), 1, cycleBudget)
	for i, x := range cycle {
		f.Witness = append(f.Witness, w.step(x, cycle[(i+1)%len(cycle)]))
	}
	f.Switch = f.Witness[0].Switch
	f.Message = fmt.Sprintf("%s: packets from %s can loop, as those from %s%s: %s",
		lidName(w.f, f.LID), text.Count(t.pairs, "port", "ports"), sourceName(w.f, from.ports[0]), w.slName(), formatCycle(f.Witness, false, len(w.vls) > 1))
}

// step returns the channel of the lowest port by which packets leave node x for node to.
func (w *searcher) step(x, to int32) Hop {
	base := w.c.nodes[x].base
	for word := range w.words {
		for set := w.onward(x, word); set != 0; set &= set - 1 {
			num := fabric.PortNum(word*64 + bits.TrailingZeros64(set))
			if w.c.next[base+int32(num)] == to {
				return w.hopFrom(x, num)
			}
		}
	}
	return Hop{}
}

// hopFrom returns the channel by which packets for the LID leave node x by port num.
func (w *searcher) hopFrom(x int32, num fabric.PortNum) Hop {
	at := w.c.nodes[x]
	s, lid := fabric.NodeID(at.s), w.dests[0].lid
	h := hopOf(w.f, s, num)
	h.LID, h.Choice = lid, w.choiceText(at, lid, num)
	if num <= w.f.Node(s).NumPorts {
		h.VL = lft.DropVL
		if vl := w.laneOf(w.c, x, num); vl >= 0 {
			h.VL = w.vls[vl]
		}
	}
	return h
}

// choiceText returns "static" or the group by which a switch chooses a port.
func (p *choicePlan) choiceText(at node, lid fabric.LID, num fabric.PortNum) string {
	for k, t := range p.t.PLFTs {
		if at.plft != anyPLFT && int(at.plft) != k || lid > t.Ports.MaxLID() {
			continue
		}
		s := fabric.NodeID(at.s)
		which := ""
		if len(p.t.PLFTs) > 1 {
			which = fmt.Sprintf(" of PLFT %d", k)
		}
		if num != fabric.NoPath && t.Ports.Row(s)[lid] == num {
			return "static" + which
		}
		if state, group := t.At(s, lid); state != adaptive.Static && group >= 0 {
			g := &p.t.Groups[s][group]
			if ports := g.Ports(); ports.Has(num) {
				return fmt.Sprintf("group %d%s", g.Number, which)
			}
		}
	}
	return ""
}

// fate returns a port by which node x loses packets, if possible the
// static one, and describes how it loses them.
func (w *searcher) fate(x int32) (num fabric.PortNum, text string) {
	at, d := w.c.nodes[x], &w.dests[0]
	s := fabric.NodeID(at.s)
	var bad []fabric.PortNum
	where := "" // the first PLFT without a choice, if there are several
	for k, t := range w.t.PLFTs {
		if at.plft != anyPLFT && int(at.plft) != k || at.plft == anyPLFT && t.Lacks(s) {
			continue
		}
		choices := w.t.Choice(k, s, d.lid).Ports
		if choices.Len() == 0 && where == "" && len(w.t.PLFTs) > 1 {
			where = fmt.Sprintf(" in PLFT %d", k)
		}
		choices.Each(func(num fabric.PortNum) {
			if num > w.f.Node(s).NumPorts {
				bad = append(bad, num)
				return
			}
			onward := w.toSwitch[int(s)*w.words+int(num>>6)]>>(num&63)&1 != 0
			arrives := at.s == d.root && num == d.last
			if !onward && !arrives || w.laneOf(w.c, x, num) < 0 {
				bad = append(bad, num)
			}
		})
	}
	if len(bad) == 0 {
		return fabric.NoPath, "has no entry for it" + where
	}
	num = bad[0]
	choice := w.choiceText(at, d.lid, num)
	if num != fabric.ManagementPort && num <= w.f.Node(s).NumPorts {
		out := w.f.Port(s, num)
		if w.f.PeerSwitch(out) != fabric.NoNode || at.s == d.root && num == d.last {
			return num, fmt.Sprintf("drops SL %d on the way to port %s (%s)", w.c.sl, w.f.PortText(out), choice)
		}
	}
	return num, fateBy(w.f, s, num, choice)
}

// slName returns " with SL n", or "" if there is only one class.
func (w *searcher) slName() string {
	if len(w.classes) == 1 {
		return ""
	}
	return fmt.Sprintf(" with SL %d", w.c.sl)
}

// judge reports the credit loops of all choices, and those without an escape. If there are none of
// these, their rules are undecided. There must be a credit loop.
func (p *choicePlan) judge(ctx context.Context, r *Result, union *searched) error {
	n, copies := r.Adaptive, max(1, len(p.copies))
	p.prove(r, union.unicast, false)
	bound, err := p.run(ctx, true)
	if err != nil {
		return err
	}
	c := NewCollector(&r.Findings, AdaptiveRules, p.opt.Witnesses)
	report := func(rule string, g *dependencyGraph, unicast, escape bool) int {
		return copies * c.addLoops(rule, g.components(), func(f *Finding, members []int32) {
			cycle, exact := g.shortestCycle(members, 1, cycleBudget)
			w := newSearcher(p, nil, nil, escape)
			for i, ch := range cycle {
				f.Witness = append(f.Witness, w.holder(g, ch, cycle[(i+1)%len(cycle)], unicast))
			}
			f.tellOfCycle(len(members), exact, formatCycle(f.Witness, true, g.vls > 1))
		})
	}
	n.NoEscape = report(AdaptiveCreditLoop, bound.unicast, true, true)
	n.CreditLoops = report(AdaptiveEscape, union.unicast, true, false)
	n.ManagementNoEscape = report(ManagementAdaptiveCreditLoop, bound.all, false, true)
	n.ManagementCreditLoops = report(ManagementAdaptiveEscape, union.all, false, false)
	c.Close()
	const premise = "safe if a blocked packet is offered its static port again, which no public document says"
	if n.NoEscape == 0 && n.CreditLoops > 0 {
		r.leave(premise, AdaptiveCreditLoop)
	}
	if n.ManagementNoEscape == 0 && n.ManagementCreditLoops > 0 {
		r.leave(premise, ManagementAdaptiveCreditLoop)
	}
	return nil
}

// holder returns channel a of a graph as a Hop, with the lowest LID whose packets hold channel a
// while they wait for channel b; the zero Hop if no packets do. If unicast is set, only packets
// between CA and router ports count.
func (w *searcher) holder(g *dependencyGraph, a, b int32, unicast bool) (h Hop) {
	for lid := fabric.LID(1); lid <= w.f.MaxLID(); lid++ {
		if w.aim(lid) && (w.dests[0].ca || !unicast) && w.holds(g, a, b, unicast, &h) {
			break
		}
	}
	return h
}

// holds returns true if packets for the search's LID hold channel a of a graph while they wait for
// channel b. Then it sets h to a.
func (w *searcher) holds(g *dependencyGraph, a, b int32, unicast bool, h *Hop) bool {
	lid := w.dests[0].lid
	may := func(ch int32) bool {
		port, _ := g.portVL(ch)
		for k, t := range w.t.PLFTs {
			if lid <= t.Ports.MaxLID() {
				if ports := w.t.Choices(k, w.f.Owner(port), lid); ports.Has(w.f.Num(port)) {
					return true
				}
			}
		}
		return false
	}
	if !may(a) || !may(b) {
		return false
	}
	portA, _ := g.portVL(a)
	for _, w.c = range w.classes {
		w.trace()
		w.keepLive()
		has := func(sets []uint64, x, ch int32) bool {
			port, vl := g.portVL(ch)
			at, num := w.c.nodes[x], int(w.f.Num(port))
			if fabric.NodeID(at.s) != w.f.Owner(port) || sets[int(x)*w.words+num>>6]>>(num&63)&1 == 0 {
				return false
			}
			lane := w.laneOf(w.c, x, w.f.Num(port))
			return lane >= 0 && (w.copies != nil || w.vls[lane] == vl)
		}
		next := w.c.next[portA]
		if !slices.Contains(w.order, next) || !has(w.bind, next, b) {
			continue
		}
		for i, x := range w.order {
			if (i < w.fromCAs || !unicast) && has(w.sets, x, a) {
				*h = w.hopFrom(x, w.f.Num(portA))
				return true
			}
		}
	}
	return false
}

// The names of the rules.
const (
	AdaptiveDeadEnd              = "adaptive-dead-end"
	AdaptiveLoop                 = "adaptive-loop"
	AdaptiveCreditLoop           = "adaptive-credit-loop"
	AdaptiveEscape               = "adaptive-escape"
	ManagementAdaptiveLoop       = "management-adaptive-loop"
	ManagementAdaptiveDeadEnd    = "management-adaptive-dead-end"
	ManagementAdaptiveCreditLoop = "management-adaptive-credit-loop"
	ManagementAdaptiveEscape     = "management-adaptive-escape"
)

// AdaptiveRules lists the rules of this package, the gravest first.
var AdaptiveRules = ParseRules(adaptiveRuleTexts)

//go:embed adaptive_rules.txt
var adaptiveRuleTexts string
