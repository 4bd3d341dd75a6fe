package reproduce

import (
	"context"
	"fmt"
	"math/bits"
	"slices"
	"strings"

	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/mft"
	"github.com/ibweave/ibweave/papers/drawing"
	"github.com/ibweave/ibweave/papers/multistage"
	"github.com/ibweave/ibweave/routing/banyan"
	"github.com/ibweave/ibweave/state"
	"github.com/ibweave/ibweave/verify"
)

// Worked figures and theorems of the paper on multistage networks (N4 to N11).
var minExhibits = []Experiment{
	exhibit("region", "Fig. 2: a packet with the region 0100 to 1000", minRegion),
	exhibit("two-phase", "Fig. 3: a multicast from 5 to 0, 3, 6, 11 and 13 in two phases", minTwoPhase),
	exhibit("theorem1", "Theorem 1: copies of a multicast do not block each other", minTheorem1),
	exhibit("deadlock", "Fig. 4: two multicasts that wait for each other", minDeadlock),
	exhibit("theorem2", "Theorem 2: the upper input link first", minTheorem2),
}

var minRows = []rowsClaim{
	{
		spec: "N4", words: "a header with the least and the greatest address reaches a region, and no other nodes (section 2.2, figure 2)", exhibit: "region",
		why: "each element splits the region at the bit of its stage",
	},
	{
		spec: "N7", words: "two passes reach any set of destinations (section 3.1, figure 3)", exhibit: "two-phase",
		why: "the copies of the first pass are on consecutive nodes, and their destinations ascend",
	},
	{
		spec: "N8", words: "blocking does not occur among the copies of a multicast (theorem 1)", exhibit: "theorem1",
		why: "they have property 1; copies of several multicasts may block each other (E-N10)",
	},
	{
		spec: "N10", words: "multicasts 1 to 5..8 and 15 to 7..12 deadlock when elements choose differently; each asks for two links at both elements (figure 4)", exhibit: "deadlock",
		why:    "at each of the two elements one of them asks for one link only, by the paper's own rule (E-N6); the deadlock is there all the same",
		differ: []string{"links that 15 asks for at the first element", "links that 1 asks for at the second element"}, as: "with three requests at the two elements, not four",
	},
	{
		spec: "N11", words: "the upper input link first guarantees deadlock freedom (theorem 2)", exhibit: "theorem2",
		why: "the proof gives all copies of one multicast the same priority at a stage, but a third worm holds up one branch of another, and then the one that came first has the link; " +
			"the printed network of 4 takes outputs one by one, larger ones deadlock however outputs are taken (E-N7)",
		differs: func(what string) bool {
			return !strings.Contains(what, "sets of 2 worms") && !strings.Contains(what, "with room")
		},
		as: "for two worms, or with room for whole packets",
	},
}

func minRegion(_ context.Context, lab *Lab, f *Figure) error {
	if err := f.addCall(lab, "0100 to 1000", "multicast --to 4,5,6,7,8", "[0100, 1000]", "4 5 6 7 8"); err != nil {
		return err
	}
	missed, all := 0, 0
	for stages := 3; stages <= 4; stages++ {
		for from := range 1 << stages {
			for low := range 1 << stages {
				for high := low; high < 1<<stages; high++ {
					var want []string
					for a := low; a <= high; a++ {
						want = append(want, fmt.Sprint(a))
					}
					all++
					if nodesOf(multistage.Hops(stages, from, multistage.Region{Min: low, Max: high})) != strings.Join(want, " ") {
						missed++
					}
				}
			}
		}
	}
	f.add(fmt.Sprintf("of %d regions in networks of 8 and 16, from each node, reach other nodes or lack some", all), "0", missed)
	return f.addCall(lab, "x10x as a cube", "multicast --header cube --to 4,5,12,13")
}

// nodesOf lists the nodes that a packet comes to.
func nodesOf[H any](hops []multistage.Hop[H]) string {
	var list []int
	for _, h := range hops {
		if h.Stage == 0 {
			list = append(list, h.Out)
		}
	}
	slices.Sort(list)
	return strings.Trim(fmt.Sprint(list), "[]")
}

// drawHops draws the elements that packets pass, by stage from the left, and the nodes
// that they come to. who names the packet of a hop by its index.
func drawHops(title string, n int, hops []multistage.Hop[multistage.Region], who func(hop int) string) drawing.Network {
	d := drawing.Network{Title: title, Arrows: []drawing.Arrow{}, Cables: [][2]int{}}
	index := map[string]int{}
	spot := func(name string, x int, place float64, end bool) int {
		i, ok := index[name]
		if !ok {
			i = len(d.Spots)
			index[name] = i
			d.Spots = append(d.Spots, drawing.Spot{Name: name, X: float64(x), Y: float64(int(1)<<(n-1)-1) - place, End: end})
		}
		return i
	}
	for i, h := range hops {
		from := spot(fmt.Sprintf("%d:SE%d", h.Stage, h.In/2), n-1-h.Stage, float64(h.In/2), false)
		to := 0
		if h.Stage > 0 {
			in := banyan.Butterfly(h.Stage, h.Out)
			to = spot(fmt.Sprintf("%d:SE%d", h.Stage-1, in/2), n-h.Stage, float64(in/2), false)
		} else {
			to = spot(fmt.Sprintf("node %d", h.Out), n, float64(h.Out)/2-0.25, true)
		}
		d.Cables = append(d.Cables, [2]int{from, to})
		d.Arrows = append(d.Arrows, drawing.Arrow{From: from, To: to, Who: who(i)})
	}
	return d
}

func minTwoPhase(_ context.Context, lab *Lab, f *Figure) error {
	if err := f.addCall(lab, "", "multicast --start 4", "", "4 5 6 7 8", "4 to 0, 5 to 3, 6 to 6, 7 to 11, 8 to 13", "no", "2"); err != nil {
		return err
	}
	// All sets of destinations in a network of 8, from all sources, with one start each.
	wrong, all := 0, 0
	for set := 1; set < 1<<8; set++ {
		for source := range 8 {
			to := elements(set)
			start := (set + source) % (8 - len(to) + 1)
			s, err := multistage.TwoPhase(3, source, to, start)
			if err != nil {
				return err
			}
			all++
			got := nodesOf(multistage.Hops(3, source, s.Copies))
			if s.Sends != nil {
				at := strings.Fields(got)
				var list []int
				for i, x := range s.Sends {
					if i >= len(at) || at[i] != fmt.Sprint(x.From) {
						wrong++
						break
					}
					list = append(list, x.To)
				}
				slices.Sort(list)
				got = strings.Trim(fmt.Sprint(list), "[]")
			}
			if got != strings.Trim(fmt.Sprint(to), "[]") {
				wrong++
			}
		}
	}
	f.add(fmt.Sprintf("of %d multicasts in a network of 8, each set of nodes from each source, miss a destination", all), "0", wrong)
	return nil
}

// elements lists the numbers of the bits that are set.
func elements(set int) (list []int) {
	for set != 0 {
		list = append(list, bits.TrailingZeros(uint(set)))
		set &= set - 1
	}
	return list
}

func minTheorem1(_ context.Context, lab *Lab, f *Figure) error {
	property := true
	for n := 2; n <= 4; n++ {
		size := 1 << n
		all, blocked := 0, 0
		for set := 1; set < 1<<size; set++ {
			to := elements(set)
			for start := 0; start+len(to) <= size; start++ {
				sends := make([]multistage.Send, len(to))
				for i, d := range to {
					sends[i] = multistage.Send{From: start + i, To: d}
				}
				all++
				if _, conflict := multistage.FirstConflict(n, sends); conflict {
					blocked++
				}
				property = property && multistage.Concentrated(sends)
			}
		}
		f.add(fmt.Sprintf("of %d sets of copies in a network of %d block each other", all, size), "0", blocked)
	}
	f.add("all of them have property 1", "yes", yes(property))
	_, gap := multistage.FirstConflict(3, []multistage.Send{{From: 0, To: 0}, {From: 2, To: 1}})
	f.add("0 to 0 and 2 to 1 in a network of 8, sources that are not consecutive, block each other", "", yes(gap))
	_, two := multistage.FirstConflict(3, []multistage.Send{{From: 0, To: 0}, {From: 1, To: 4}, {From: 4, To: 1}, {From: 5, To: 5}})
	f.add("two multicasts, 0 to 0 and 1 to 4, and 4 to 1 and 5 to 5, block each other", "", yes(two))
	return nil
}

// drawWorms draws the elements at which worms wait for each other, the nodes that they
// come from, and the links that they hold and wait for.
func drawWorms(title string, worms []multistage.Worm, r *multistage.WormResult) drawing.Network {
	d := drawing.Network{Title: title, Arrows: []drawing.Arrow{}, Cables: [][2]int{}}
	who := func(w int) string { return fmt.Sprintf("worm of %d", worms[w].Source) }
	n := len(r.Deadlock)
	for i, w := range r.Deadlock {
		d.Spots = append(d.Spots, drawing.Spot{Name: fmt.Sprintf("node %d", worms[w.Worm].Source), Y: float64(n - 1 - i), End: true})
	}
	for i, w := range r.Deadlock {
		y := float64(n - 1 - i)
		element := len(d.Spots)
		d.Spots = append(d.Spots,
			drawing.Spot{Name: fmt.Sprintf("stage %d, SE %d", w.Stage, w.Link/2), X: 1, Y: y},
			drawing.Spot{Name: fmt.Sprintf("link %d", w.Link), X: 2.5, Y: y, End: true})
		d.Cables = append(d.Cables, [2]int{element, element + 1})
		for k := range n {
			d.Cables = append(d.Cables, [2]int{k, element})
		}
		d.Arrows = append(d.Arrows, drawing.Arrow{From: element, To: element + 1, Who: who(w.For)},
			drawing.Arrow{From: element, To: element + 1, Who: who(w.Worm), Waits: true})
	}
	for _, w := range worms {
		d.Notes = append(d.Notes, fmt.Sprintf("%d sends to %s.", w.Source, w.To))
	}
	return d
}

// wormTables adds to a figure what verify finds if worms are trees of forwarding tables.
func wormTables(ctx context.Context, stages int, worms []multistage.Worm, to *Figure) error {
	f, err := withLIDs(banyan.Banyan(stages, true))
	if err != nil {
		return err
	}
	r, err := banyan.Engine{}.Route(ctx, f, lft.Options{})
	if err != nil {
		return err
	}
	net, err := banyan.Detect(r.Fabric)
	if err != nil {
		return err
	}
	var groups []mft.Group
	for _, w := range worms {
		var to []int
		for a := w.To.Min; a <= w.To.Max; a++ {
			to = append(to, a)
		}
		g := net.Group(fmt.Sprint(w.Source), to...)
		g.Senders = net.Outputs[w.Source : w.Source+1]
		groups = append(groups, g)
	}
	plan, err := banyan.RegionTree{}.Build(ctx, r, groups, mft.Options{})
	if err != nil {
		return err
	}
	for _, c := range []struct {
		what    string
		copying verify.Copying
	}{{"worms that branch", verify.Wormhole}, {"packets that InfiniBand switches copy", verify.Independent}} {
		v, err := verify.Check(ctx, &state.State{Fabric: r.Fabric, Tables: r.Tables, SL2VL: r.SL2VL, PathSLs: r.PathSLs, Multicast: plan}, verify.Options{Copying: c.copying})
		if err != nil {
			return err
		}
		to.add("as forwarding tables, verify finds a credit loop of "+c.what, "", yes(v.Multicast.CreditLoops > 0))
	}
	return nil
}

func minDeadlock(ctx context.Context, lab *Lab, f *Figure) error {
	worms := []multistage.Worm{{Source: 1, To: multistage.Region{Min: 5, Max: 8}}, {Source: 15, To: multistage.Region{Min: 7, Max: 12}}}
	asks := func(w multistage.Worm, stage, element int) (links int) {
		for _, h := range multistage.Hops(4, w.Source, w.To) {
			if h.Stage == stage && h.In/2 == element {
				links++
			}
		}
		return links
	}
	const both = "worms --worm 1:5-8,15:7-12"
	for _, tt := range [][3]string{
		{"worm of 1 first at one element, of 15 at the other", "deadlock", both + " --lower-first 1:5"},
		{"worm of 15 first at one element, of 1 at the other", "deadlock", both + " --lower-first 1:3"},
		{"upper input first at all elements", "all arrive", both},
		{"worm of 1 first at one element, with room for whole packets", "", both + " --lower-first 1:5 --buffer 6"},
	} {
		if err := f.addCall(lab, tt[0], tt[2], tt[1]); err != nil {
			return err
		}
	}
	f.Drawings = f.Drawings[:1]
	f.add("links that 1 asks for at the first element", "2", asks(worms[0], 1, 3))
	f.add("links that 15 asks for at the first element", "2", asks(worms[1], 1, 3))
	f.add("links that 1 asks for at the second element", "2", asks(worms[0], 1, 5))
	f.add("links that 15 asks for at the second element", "2", asks(worms[1], 1, 5))
	if err := wormTables(ctx, 4, worms, f); err != nil {
		return err
	}
	f.Parameters = []Parameter{{"network", "16 nodes"}, {"worms", "6 flits"}, {"buffers", "1 flit where nothing else is said"}}
	return nil
}
