package verify

import (
	"context"
	"fmt"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/graph"
	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/mft"
)

// report adds the findings on multicast packets, except credit loops.
func (c *mcPlan) report(r *Result, opt Options) {
	out := NewCollector(&r.Findings, Rules, opt.Findings)
	w := newMCWorker(c)
	for i := range c.found.troubles {
		t := &c.found.troubles[i]
		for _, at := range []struct {
			rule string
			mcTally
			describe func(f *Finding, t *mft.Tree, at mcTally)
		}{
			{MulticastLoop, t.loop, w.describeLoop},
			{MulticastDuplicate, t.duplicate, w.describeDuplicate},
			{MulticastMissing, t.missing, w.describeMissing},
			{MulticastStray, t.stray, w.describeStray},
		} {
			if at.n > 0 {
				out.Add(at.rule, at.n, func(f *Finding) {
					f.LID = t.tree.MLID
					w.load(f.LID)
					w.expect(t.tree)
					at.describe(f, t.tree, at.mcTally)
					f.Message = treeName(t.tree) + ": " + f.Message
				})
			}
		}
	}
	c.reportDead(out, MulticastDeadPort, c.found.dead, "has no cable")
	c.reportDead(out, MulticastDeadEnd, c.found.ends, "leads to a switch with no other port in its mask")
	c.reportUse(out)
	for _, x := range c.found.unused {
		out.Add(MulticastUnused, int64(x.n), func(f *Finding) {
			f.Switch, f.LID = c.f.Node(c.f.Owner(x.port)).GUID, x.mlid
			f.Message = fmt.Sprintf("no sender's packets reach %s in the masks of MLID %#x, such as %s", text.Count(x.n, "port", "ports"), uint16(x.mlid), c.f.PortName(x.port))
		})
	}
	if c.Trees != nil {
		c.reportUnknown(r, out)
	}
	if n := len(c.found.gaps); n > 0 {
		x := c.found.gaps[0]
		reason := fmt.Sprintf("%s sends packets of MLID %#x to a switch without a mask for it", c.f.PortName(x.port), uint16(x.mlid))
		if n > 1 {
			reason += fmt.Sprintf(", and so do %d more ports and MLIDs", n-1)
		}
		r.leave(reason, MulticastRules...)
	}
	out.Close()
}

// reportDead reports ports that lead nowhere, each once with all its MLIDs.
func (c *mcPlan) reportDead(out *Collector, rule string, list []deadMask, why string) {
	for i := 0; i < len(list); {
		first, n := list[i], int64(0)
		for ; i < len(list) && list[i].port == first.port; i++ {
			n++
		}
		out.Add(rule, n, func(f *Finding) {
			f.Switch, f.LID = c.f.Node(c.f.Owner(first.port)).GUID, first.mlid
			of := fmt.Sprintf("the mask of MLID %#x", uint16(first.mlid))
			if n > 1 {
				of = fmt.Sprintf("the masks of %d MLIDs, such as %#x", n, uint16(first.mlid))
			}
			f.Message = fmt.Sprintf("%s %s and is in %s", c.f.PortName(first.port), why, of)
		})
	}
}

// reportUnknown reports MLIDs without known senders.
func (c *mcPlan) reportUnknown(r *Result, out *Collector) {
	var unknown []fabric.LID
	for i, mlid := range c.mlids {
		if _, assumed := c.of(i); assumed && len(c.Tables.Ports(mlid)) > 0 {
			unknown = append(unknown, mlid)
		}
	}
	if len(unknown) == 0 {
		return
	}
	message := fmt.Sprintf("no group has MLID %#x and senders, and there are masks for it", uint16(unknown[0]))
	if n := len(unknown); n > 1 {
		message = fmt.Sprintf("no group has any of %d MLIDs and senders, and there are masks for them, the first for %#x", n, uint16(unknown[0]))
	}
	out.Add(MulticastUnknown, int64(len(unknown)), func(f *Finding) { f.LID, f.Message = unknown[0], message })
	r.leave(message, MulticastRules...)
}

// A multicast table is nearly full if nearlyFull tenths of it, or more, are in use.
const nearlyFull = 9

// reportUse reports on multicast tables: MLIDs beyond capacity, groups with
// one member, and masks without an end port.
func (c *mcPlan) reportUse(out *Collector) {
	if room := c.found.counts.Capacity; room > 0 {
		beyond := len(text.Where(c.mlids, func(l fabric.LID) bool { return int(l-mft.MinMLID) >= room }))
		if beyond > 0 {
			out.Add(MulticastBeyondCapacity, int64(beyond), func(f *Finding) {
				f.LID = c.mlids[len(c.mlids)-beyond]
				f.Message = fmt.Sprintf("the smallest multicast table has room for %d MLIDs, up to %#x: %s beyond, the first %#x",
					room, int(mft.MinMLID)+room-1, text.CountGrouped(beyond, "MLID is", "MLIDs are"), uint16(f.LID))
			})
		} else if used := len(c.mlids); used*10 >= room*nearlyFull {
			out.Add(MulticastNearlyFull, int64(used), func(f *Finding) {
				f.Message = fmt.Sprintf("%s of the %d that the smallest multicast table has room for", text.CountGrouped(used, "MLID is in use", "MLIDs are in use"), room)
			})
		}
	}
	c.reportNoEndPort(out)
	c.reportLone(out)
}

// reportNoEndPort reports MLIDs whose masks lead to no end port.
func (c *mcPlan) reportNoEndPort(out *Collector) {
	var empty []fabric.LID
	for i, mlid := range c.Tables.MLIDs() {
		ports := c.Tables.PortsAt(i)
		if len(ports) > 0 && !slices.ContainsFunc(ports, func(p fabric.PortID) bool {
			peer := c.f.Peer(p)
			return c.f.Num(p) == fabric.ManagementPort || peer != fabric.NoPort && !c.f.IsSwitch(c.f.Owner(peer))
		}) {
			empty = append(empty, mlid)
		}
	}
	if len(empty) == 0 {
		return
	}
	out.Add(MulticastNoEndPort, int64(len(empty)), func(f *Finding) {
		f.LID, f.Message = empty[0], fmt.Sprintf("the masks of MLID %#x lead to no end port", uint16(empty[0]))
		if n := len(empty); n > 1 {
			f.Message = fmt.Sprintf("the masks of %d MLIDs lead to no end port, the first those of %#x", n, uint16(empty[0]))
		}
	})
}

// reportLone reports groups with one member.
func (c *mcPlan) reportLone(out *Collector) {
	alone := map[int]fabric.PortID{} // by group; NoPort for several members
	for _, t := range c.trees {
		for _, list := range [][]fabric.PortID{t.Senders, t.Receivers} {
			for _, p := range list {
				if other, known := alone[t.Group]; known && other != p {
					p = fabric.NoPort
				}
				alone[t.Group] = p
			}
		}
	}
	var first *mft.Tree
	member, n := fabric.NoPort, int64(0)
	for _, t := range c.trees {
		if p, known := alone[t.Group]; known && p != fabric.NoPort {
			delete(alone, t.Group) // only the first tree of a group counts
			if n++; n == 1 {
				first, member = t, p
			}
		}
	}
	if n == 0 {
		return
	}
	out.Add(MulticastLoneMember, n, func(f *Finding) {
		f.LID = first.MLID
		f.Message = fmt.Sprintf("%s has one member, %s", treeName(first), c.f.PortName(member))
		if n > 1 {
			f.Message = fmt.Sprintf("%s groups have one member, the first %s: %s", text.Grouped(n), treeName(first), c.f.PortName(member))
		}
	})
}

// treeName returns the name of a tree's group, with its MLID.
func treeName(t *mft.Tree) string {
	if t.Group < 0 {
		return fmt.Sprintf("MLID %#x", uint16(t.MLID))
	}
	return fmt.Sprintf("group %q (MLID %#x)", t.Name, uint16(t.MLID))
}

// pathTo returns the hops of a copy, up to index i in sent.
func (w *mcWorker) pathTo(i int32) (list []Hop) {
	for ; i >= 0; i = w.sent[i].after {
		list = append(list, w.hopOf(w.sent[i].arc))
	}
	slices.Reverse(list)
	return list
}

// hopOf returns the Hop of an arc, without a VL.
func (w *mcWorker) hopOf(arc int32) Hop {
	h := HopOf(w.f, w.ports[arc])
	h.LID = w.current
	return h
}

func (w *mcWorker) describeLoop(f *Finding, t *mft.Tree, at mcTally) {
	f.Witness = rotate(text.Each(w.loop(t.SL, at.sender), w.hopOf))
	f.Switch = f.Witness[0].Switch
	f.Message = fmt.Sprintf("packets of %s loop, those of %s: %s",
		text.Count(at.n, "sender", "senders"), sourceName(w.f, at.sender), formatCycle(f.Witness, false, false))
}

// loop returns a cycle of arcs that a sender's packet takes: the first that a
// depth-first search closes.
func (w *mcWorker) loop(sl fabric.SL, sender fabric.PortID) []int32 {
	// The search begins at vertex 0, the sender. Arc k is vertex k+1.
	var next []int32
	cycle := graph.FirstCycle(len(w.ports)+1, func(v int32) []int32 {
		at := w.start(sl, sender)
		if v > 0 {
			at = w.arcs[v-1].mcStart
		}
		next = next[:0]
		w.outs(sl, at, func(k int32) { next = append(next, k+1) })
		return next
	})
	for i := range cycle {
		cycle[i]--
	}
	return cycle
}

func (w *mcWorker) describeDuplicate(f *Finding, t *mft.Tree, at mcTally) {
	w.flood(t.SL, w.start(t.SL, at.sender))
	other := t.Receivers[slices.IndexFunc(t.Receivers, func(p fabric.PortID) bool {
		n := w.got(p, false)
		return n > 1 || n > 0 && p == at.sender
	})]
	first, second := w.twoPaths(t.SL, at.sender, w.f.Attachment(other))
	f.Witness = second
	f.Switch = second[len(second)-1].Switch
	f.Message = fmt.Sprintf("%s more than one copy; %s ", text.Count(at.n, "pair gets", "pairs get"), sourceName(w.f, other))
	if first == nil {
		f.Message += "gets its own packets back by " + formatPath(second)
		return
	}
	f.Message += fmt.Sprintf("gets copies of a packet of %s by %s and by %s", sourceName(w.f, at.sender), formatPath(first), formatPath(second))
}

// twoPaths returns the paths of two copies of a packet to a switch port. If it is one copy that
// comes back to its sender, first is nil.
func (w *mcWorker) twoPaths(sl fabric.SL, sender, end fabric.PortID) (first, second []Hop) {
	w.flood(sl, w.start(sl, sender))
	target, _ := slices.BinarySearch(w.ports, end)
	// Go back from the end to an arc with two copies before it.
	tail := []Hop{}
	arc := int32(target)
	for {
		var before []int32 // indices in sent of copies before arc; -1 for the sender
		if w.goesOut(sl, w.start(sl, sender), arc) {
			before = append(before, -1)
		}
		for i, h := range w.sent {
			if w.goesOut(sl, w.arcs[h.arc].mcStart, arc) {
				before = append(before, int32(i))
			}
		}
		tail = append(tail, w.hopOf(arc))
		if len(before) > 1 {
			slices.Reverse(tail)
			return append(w.pathTo(before[0]), tail...), append(w.pathTo(before[1]), tail...)
		}
		if before[0] < 0 {
			slices.Reverse(tail)
			return nil, tail
		}
		arc = w.sent[before[0]].arc
	}
}

func (w *mcWorker) describeMissing(f *Finding, t *mft.Tree, at mcTally) {
	f.Message = fmt.Sprintf("%s no copy; ", text.Count(at.n, "pair gets", "pairs get"))
	loops := w.flood(t.SL, w.start(t.SL, at.sender))
	other := t.Receivers[slices.IndexFunc(t.Receivers, func(p fabric.PortID) bool {
		return p != at.sender && w.got(p, loops) == 0 && !w.beside(t.SL, at.sender, p)
	})]
	sender, receiver := sourceName(w.f, at.sender), sourceName(w.f, other)
	in, end := w.f.Attachment(at.sender), w.f.Attachment(other)
	switch {
	case in == fabric.NoPort:
		f.Message += fmt.Sprintf("sender %s has no cable to a switch", sender)
		return
	case w.mutes(t.SL, at.sender):
		f.Message += fmt.Sprintf("the SL-to-VL table of sender %s drops SL %d", sender, t.SL)
		return
	case end == fabric.NoPort:
		f.Message += fmt.Sprintf("receiver %s has no cable to a switch", receiver)
		return
	}
	s := w.f.Owner(end)
	f.Switch = w.f.Node(s).GUID
	came := slices.IndexFunc(w.sent, func(h mcHop) bool { return w.to[w.ports[h.arc]] == int32(s) })
	_, listed := slices.BinarySearch(w.ports, end)
	switch {
	case came < 0 && w.f.Owner(in) != s:
		what := "no packet of %s comes to %s of receiver %s"
		if w.mask[s].isEmpty() {
			what += ", which has no mask"
		}
		f.Message += fmt.Sprintf(what, sender, switchName(w.f, s), receiver)
	case listed:
		f.Message += fmt.Sprintf("packets of %s come to %s, whose SL-to-VL table drops SL %d on the way to port %s of receiver %s",
			sender, switchName(w.f, s), t.SL, w.f.PortText(end), receiver)
	default:
		f.Message += fmt.Sprintf("packets of %s come to %s, which does not have port %s of receiver %s in its mask",
			sender, switchName(w.f, s), w.f.PortText(end), receiver)
	}
	if came >= 0 {
		f.Witness = w.pathTo(int32(came))
	}
}

func (w *mcWorker) describeStray(f *Finding, t *mft.Tree, at mcTally) {
	loops := w.flood(t.SL, w.start(t.SL, at.sender))
	other := fabric.NoPort
	w.strays(func(p fabric.PortID) {
		if other == fabric.NoPort && (p != at.sender || !loops) {
			other = p
		}
	})
	end := w.f.Attachment(other)
	i := slices.IndexFunc(w.sent, func(h mcHop) bool { return w.ports[h.arc] == end })
	f.Witness = w.pathTo(int32(i))
	f.Switch = w.f.Node(w.f.Owner(end)).GUID
	f.Message = fmt.Sprintf("%s of a sender and an end port that is no receiver; %s gets packets of %s",
		text.Count(at.n, "pair", "pairs"), sourceName(w.f, other), sourceName(w.f, at.sender))
}

// closes returns the lowest MLID whose packets hold channel a while they wait
// for b; 0 if there is none.
func (c *mcPlan) closes(a, b int32) fabric.LID {
	g := c.graph
	portA, _ := g.portVL(a)
	portB, _ := g.portVL(b)
	alone := *c
	alone.graph, alone.Plan, alone.copying = newSharedGraph(g.channels), &mft.Plan{Tables: c.Tables}, Independent
	w := newMCWorker(&alone)
	for i, mlid := range c.mlids {
		ports := c.Tables.Ports(mlid)
		if _, ok := slices.BinarySearch(ports, portA); !ok {
			continue
		}
		if _, ok := slices.BinarySearch(ports, portB); !ok {
			continue
		}
		w.load(mlid)
		trees, _ := c.of(i)
		for _, t := range trees {
			_ = w.deliver(context.Background(), t)
			w.addDependencies(t)
		}
		if w.graph.has(a, b) {
			return mlid
		}
	}
	return 0
}
