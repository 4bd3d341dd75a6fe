package reproduce

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/ibweave/ibweave/papers/drawing"
	"github.com/ibweave/ibweave/papers/multistage"
)

var wormModel = Model{
	Name: "worms", Short: "multicast worms in a banyan network, and whether they deadlock",
	Long: `Worms with region headers pass a banyan network flit by flit. They are given (--worm), all
threes of two worms to two nodes and one to one (--threes), or drawn (--random).`,
	Example: "worms --stages 3 --worm 0:2-5,7:1-4@3 --take atomic --buffer 2",
	define: func(flags *pflag.FlagSet) func(lab *Lab) (*Figure, error) {
		var o wormSweep
		flags.IntVar(&o.stages, "stages", 4, "stages of the network, for 2^n nodes")
		flags.IntVar(&o.flits, "flits", 6, "flits of a worm")
		flags.IntSliceVar(&o.buffer, "buffer", []int{1}, "flits that an input of an element has room for")
		flags.StringSliceVar(&o.take, "take", []string{"greedy"}, "how a worm takes two outputs, `LIST` of greedy, atomic and lock-step")
		flags.StringSliceVar(&o.lower, "lower-first", nil, "elements whose lower input goes first, as STAGE:ELEMENT; of all others it is the upper one")
		flags.StringSliceVar(&o.worm, "worm", nil, "worms, as SOURCE:FIRST-LAST or with @CYCLE behind it from that cycle on")
		flags.BoolVar(&o.threes, "threes", false, "all threes of worms")
		flags.IntSliceVar(&o.random, "random", nil, "as many worms at a time to random regions")
		flags.IntVar(&o.draws, "draws", 5000, "sets that are drawn with --random")
		return o.figure
	},
}

// wormSweep has the flags of the model worms. Networks have
// 2^stages processors; buffers are in flits.
type wormSweep struct {
	stages, flits, draws int
	buffer, random       []int
	take, lower, worm    []string
	threes               bool
}

func (o *wormSweep) figure(lab *Lab) (*Figure, error) {
	if o.stages < 1 || o.stages > 10 || o.draws < 1 {
		return nil, errors.New("want 1 to 10 --stages and 1 or more --draws")
	}
	lower := map[[2]int]bool{}
	for _, word := range o.lower {
		var stage, element int
		if n, err := fmt.Sscanf(word, "%d:%d", &stage, &element); n != 2 || err != nil {
			return nil, fmt.Errorf("--lower-first %q: want STAGE:ELEMENT, as in 1:5", word)
		}
		lower[[2]int{stage, element}] = true
	}
	opt := multistage.WormOptions{Stages: o.stages, Flits: o.flits, First: func(stage, element int) int {
		if lower[[2]int{stage, element}] {
			return 1
		}
		return 0
	}}
	given, err := o.given()
	if err != nil {
		return nil, err
	}
	sets, err := o.sets(lab)
	if err != nil {
		return nil, err
	}
	f := &Figure{}
	for _, word := range o.take {
		if opt.Take, err = multistage.ParseTaking(word); err != nil {
			return nil, err
		}
		for _, opt.Buffer = range o.buffer {
			name := varied(ifSeveral(o.take, "%v", word), ifSeveral(o.buffer, "buffers of %v", opt.Buffer))
			if given != nil {
				r, err := multistage.RunWorms(given, opt)
				if err != nil {
					return nil, err
				}
				f.add(name, "", outcome(r.Deadlock != nil))
				if r.Deadlock != nil {
					f.Drawings = append(f.Drawings, drawWorms(varied(strings.Join(o.worm, ", "), name), given, r))
				}
			}
			for _, s := range sets {
				stuck := 0
				for _, worms := range s.worms {
					r, err := multistage.RunWorms(worms, opt)
					if err != nil {
						return nil, err
					}
					if r.Deadlock != nil {
						stuck++
					}
				}
				f.add(varied(fmt.Sprintf("of %d %s in a network of %d deadlock", len(s.worms), s.what, 1<<o.stages), name), "", stuck)
			}
		}
	}
	if f.Rows == nil {
		return nil, errors.New("want --worm, --threes or --random")
	}
	return f, nil
}

type wormSets struct {
	what  string
	worms [][]multistage.Worm
}

// sets makes or draws the sets of --threes and --random.
func (o *wormSweep) sets(lab *Lab) (list []wormSets, err error) {
	if o.threes {
		list = append(list, wormSets{"threes of worms", threesOfWorms(1 << o.stages)})
	}
	for _, k := range o.random {
		worms, err := o.draw(lab, k)
		if err != nil {
			return nil, err
		}
		list = append(list, wormSets{fmt.Sprintf("random sets of %d worms", k), worms})
	}
	return list, nil
}

func (o *wormSweep) given() (list []multistage.Worm, err error) {
	for _, word := range o.worm {
		var w multistage.Worm
		where, when, starts := strings.Cut(word, "@")
		n, err := fmt.Sscanf(where, "%d:%d-%d", &w.Source, &w.To.Min, &w.To.Max)
		if starts && err == nil {
			_, err = fmt.Sscanf(when, "%d", &w.Start)
		}
		if n != 3 || err != nil {
			return nil, fmt.Errorf("--worm %q: want SOURCE:FIRST-LAST, as in 1:5-8, or SOURCE:FIRST-LAST@CYCLE", word)
		}
		list = append(list, w)
	}
	return list, nil
}

// threesOfWorms returns all sets of three worms from different
// processors: two worms go to two nodes each, the third to one.
func threesOfWorms(size int) (sets [][]multistage.Worm) {
	to := func(first, last int) multistage.Region { return multistage.Region{Min: first, Max: last} }
	for a := range size {
		for b := a + 1; b < size; b++ {
			for k := range size * (size - 1) * (size - 1) * size {
				c, x, y, z := k/size/(size-1)/(size-1), k/size/(size-1)%(size-1), k/size%(size-1), k%size
				if c != a && c != b {
					sets = append(sets, []multistage.Worm{{Source: a, To: to(x, x+1)}, {Source: b, To: to(y, y+1)}, {Source: c, To: to(z, z)}})
				}
			}
		}
	}
	return sets
}

// draw draws sets of k worms from different processors to random regions.
func (o *wormSweep) draw(lab *Lab, k int) ([][]multistage.Worm, error) {
	size := 1 << o.stages
	if k < 1 || k > size {
		return nil, fmt.Errorf("--random %d: want 1 to the %d processors", k, size)
	}
	rng := rand.New(rand.NewPCG(lab.Seed, uint64(k)))
	sets := make([][]multistage.Worm, o.draws)
	for i := range sets {
		for _, source := range rng.Perm(size)[:k] {
			a, b := rng.IntN(size), rng.IntN(size)
			sets[i] = append(sets[i], multistage.Worm{Source: source, To: multistage.Region{Min: min(a, b), Max: max(a, b)}})
		}
	}
	return sets, nil
}

var multicastModel = Model{
	Name: "multicast", Short: "one multicast in a wrap-around banyan network, pass by pass",
	Long: `A packet goes to nodes in a row, which recycle it to the destinations. Headers have a region
or a cube. Cubes have 1, 2, 4.. nodes: more get the packet than are needed, and drop it.
With --blocks the nodes in a row are as many as there are aligned cubes of 2^k destinations,
and each recycles the packet to one of these, as one packet with a header of its own.`,
	Example: "multicast --stages 5 --source 9 --to 1,2,3,20,21 --start 8 --header cube --blocks",
	define: func(flags *pflag.FlagSet) func(lab *Lab) (*Figure, error) {
		n := flags.Int("stages", 4, "stages of the network, for 2^n nodes")
		source := flags.Int("source", 5, "node that sends")
		to := flags.IntSlice("to", []int{0, 3, 6, 11, 13}, "destinations")
		start := flags.Int("start", 0, "first of the nodes in a row; with cubes a multiple of their number")
		header := flags.String("header", "region", "what headers have, `KIND`: region or cube")
		blocks := flags.Bool("blocks", false, "second pass to cubes of destinations")
		return func(*Lab) (*Figure, error) {
			return multicastRows(*n, *source, slices.Sorted(slices.Values(*to)), *start, *header, *blocks)
		}
	},
}

// blocksOf cuts ascending destinations into aligned blocks of 1, 2, 4.. nodes.
func blocksOf(to []int) (list []multistage.Region) {
	for len(to) > 0 {
		size := 1
		for to[0]%(2*size) == 0 && 2*size <= len(to) && to[2*size-1] == to[0]+2*size-1 {
			size *= 2
		}
		list, to = append(list, multistage.Region{Min: to[0], Max: to[size-1]}), to[size:]
	}
	return list
}

func multicastRows(n, source int, to []int, start int, header string, blocks bool) (*Figure, error) {
	if header != "region" && header != "cube" {
		return nil, fmt.Errorf("--header %q: want region or cube", header)
	}
	if _, err := multistage.TwoPhase(n, source, to, 0); err != nil { // check the addresses
		return nil, err
	}
	parts := blocksOf(to)
	if !blocks {
		parts = parts[:0]
		for _, d := range to {
			parts = append(parts, multistage.Region{Min: d, Max: d})
		}
	}
	f := &Figure{}
	first, exact := multistage.RegionOf(to)
	if header == "cube" {
		_, exact = multistage.CubeOf(to)
	}
	if exact {
		parts = nil
	} else {
		copies := len(parts)
		if header == "cube" {
			for copies = 1; copies < len(parts); copies *= 2 {
			}
		}
		first = multistage.Region{Min: start, Max: start + copies - 1}
		if err := first.Check(n); err != nil || header == "cube" && start%copies != 0 {
			return nil, fmt.Errorf("--start %d for %d nodes: want a start in the network, and with cubes a multiple of their number", start, copies)
		}
	}
	var one []multistage.Hop[multistage.Region]
	word := fmt.Sprintf("[%0*b, %0*b]", n, first.Min, n, first.Max)
	nodes := ""
	if header == "cube" {
		list := to
		if !exact {
			list = nil
			for a := first.Min; a <= first.Max; a++ {
				list = append(list, a)
			}
		}
		c, _ := multistage.CubeOf(list)
		if err := c.Check(n); err != nil {
			return nil, err
		}
		word = fmt.Sprintf("fixed %0*b, free %0*b", n, c.Fixed, n, c.Free)
		hops := multistage.Hops(n, source, c)
		nodes = nodesOf(hops)
		for _, h := range hops {
			one = append(one, multistage.Hop[multistage.Region]{Stage: h.Stage, In: h.In, Out: h.Out})
		}
	} else {
		one = multistage.Hops(n, source, first)
		nodes = nodesOf(one)
	}
	f.add("header of phase 1", "", word)
	f.add("nodes that get a copy in phase 1", "", nodes)
	var sends []string
	var two []multistage.Hop[multistage.Region]
	var packet []int
	links := map[[2]int]int{}
	blocked := false
	for i, p := range parts {
		from := first.Min + i
		says := fmt.Sprintf("%d to %d", from, p.Min)
		if p.Max > p.Min {
			says += fmt.Sprintf("-%d", p.Max)
		}
		sends = append(sends, says)
		for _, h := range multistage.Hops(n, from, p) { // cubes would take the same way
			at := [2]int{h.Stage, h.Out}
			blocked = blocked || links[at] > 0 && links[at] != i+1
			links[at] = i + 1
			two, packet = append(two, h), append(packet, i)
		}
	}
	passes := 1
	if parts != nil {
		passes = 2
		f.add("sends of phase 2", "", strings.Join(sends, ", "))
		f.add("copies of phase 2 block each other", "", yes(blocked))
	}
	f.add("passes", "", passes)
	crossed := 0
	for _, h := range slices.Concat(one, two) {
		if h.Stage > 0 {
			crossed++
		}
	}
	f.add("links between stages that copies cross", "", crossed)
	switch {
	case two != nil:
		f.Drawings = []drawing.Network{drawHops("Phase 2", n, two, func(i int) string { return string(rune('a' + packet[i]%26)) })}
	case header == "region":
		f.Drawings = []drawing.Network{drawHops("Phase 1", n, one, func(int) string { return "M" })}
	}
	return f, nil
}

func minTheorem2(ctx context.Context, lab *Lab, f *Figure) error {
	const ways, arrive = " --take greedy,atomic,lock-step", "all arrive"
	if err := f.addCall(lab, "1 to 1 and 2, 2 to 1 and 2, 0 to 0, in a network of 4", "worms --stages 2 --worm 1:1-2,2:1-2,0:0-0"+ways, arrive, arrive, arrive); err != nil {
		return err
	}
	counter := []multistage.Worm{
		{Source: 1, To: multistage.Region{Min: 1, Max: 2}}, {Source: 2, To: multistage.Region{Min: 1, Max: 2}}, {Source: 0, To: multistage.Region{}},
	}
	if err := wormTables(ctx, 2, counter, f); err != nil {
		return err
	}
	if err := f.addCall(lab, "", "worms --stages 2 --threes"+ways, "0", "0", "0"); err != nil {
		return err
	}
	if err := f.addCall(lab, "with room for whole packets", "worms --stages 2 --threes --buffer 6", "0"); err != nil {
		return err
	}
	draws := ""
	if lab.Quick {
		draws = " --draws 1000"
	}
	for _, k := range []string{"2", "3", "4"} {
		paper := []string{"0", "0", "0"}
		if err := f.addCall(lab, "", "worms --random "+k+draws+ways, paper...); err != nil {
			return err
		}
	}
	f.Parameters = []Parameter{{"worms", "6 flits, all from time 0"}, {"buffers", "1 flit where nothing else is said"}, {"arbitration", "the upper input link first"}}
	return nil
}
