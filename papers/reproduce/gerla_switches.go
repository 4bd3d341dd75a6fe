package reproduce

import (
	"context"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/papers/myrinet"
	"github.com/ibweave/ibweave/papers/myrinet/lan"
	"github.com/ibweave/ibweave/report/chart"
)

// switchSchemes are the paper's ways to copy worms in switches: IDLE alone, which can deadlock,
// scheme 1 on the spanning tree, scheme 2 with interruption and scheme 3 with flushing.
var switchSchemes = map[string]struct {
	remedy lan.Remedy
	tree   bool // unicast, too, takes the spanning tree
}{"idle": {lan.Idle, false}, "idle-tree": {lan.Idle, true}, "interrupt": {lan.Interrupt, false}, "flush": {lan.Flush, false}}

// Prefixes of the curves of the model switches.
const (
	switchMulticast = "multicast: "
	switchUnicast   = "unicast: "
	switchAll       = "all: "
	switchStuck     = "deadlock: "
)

var switchModel = Model{
	Name: "switches", Short: "multicast that switches copy, among unicast, by the paper's schemes",
	Long: `Multicasts leave the root one after another, by tree routes, among unicast worms that start
at random. Blocked branches send IDLE on all links (idle) or with all worms on the spanning
tree (idle-tree, the paper's first scheme), or interrupt what others send (interrupt, the
second), or have unicast flushed that waits for IDLE (flush, the third). Networks are random,
another one for each draw, or given. Means are of draws without a deadlock.`,
	Example: "switches --network shufflenet --scheme interrupt,flush --unicasts 10,30 --multicasts 2 --members 6 --buffer 4 --draws 5",
	define: func(flags *pflag.FlagSet) func(lab *Lab) (*Figure, error) {
		var o switchSweep
		o.network.define(flags, "random")
		flags.IntVar(&o.spec.Switches, "switches", 8, "switches of a random network")
		flags.IntVar(&o.spec.Degree, "degree", 3, "links of each of them to others")
		flags.IntVar(&o.spec.Hosts, "hosts", 16, "hosts of a random network")
		flags.StringSliceVar(&o.scheme, "scheme", []string{"idle", "idle-tree", "interrupt", "flush"}, "`LIST` of idle, idle-tree, interrupt, flush")
		flags.IntSliceVar(&o.unicasts, "unicasts", []int{20}, "unicast worms")
		flags.IntVar(&o.multicasts, "multicasts", 4, "multicast worms")
		flags.IntVar(&o.members, "members", 5, "random destinations of each of these")
		flags.IntVar(&o.flits, "flits", wormFlits, "flits of a worm")
		flags.IntVar(&o.within, "within", 40, "cycles within which unicast starts")
		flags.IntVar(&o.buffer, "buffer", 1, "flits at an input port")
		flags.IntVar(&o.flagAfter, "flag-after", 8, "cycles of IDLE after which flush flags a port, and blocked ones after which interrupt ends the others")
		flags.IntVar(&o.timeout, "timeout", 60, "most cycles until a flushed worm is sent again")
		flags.IntVar(&o.draws, "draws", 60, "draws of networks and worms")
		return o.figure
	},
}

// switchSweep has the flags of the model switches.
type switchSweep struct {
	network                                                               lanNetwork
	spec                                                                  gen.IrregularSpec
	scheme                                                                []string
	unicasts                                                              []int
	multicasts, members, flits, within, buffer, flagAfter, timeout, draws int
}

func (o *switchSweep) figure(lab *Lab) (*Figure, error) {
	if o.draws < 1 || o.multicasts < 0 || slices.Min(o.unicasts) < 0 || o.within < 1 || o.flits < 2 {
		return nil, fmt.Errorf("want 1 or more --draws and --within, 2 or more --flits, and no negative number of worms")
	}
	x, cycles := linear("unicast worms", ""), linear("cycles", "")
	f := &Figure{
		Panels: []chart.Panel{
			{Title: "until a multicast is at all its hosts", X: x, Y: cycles}, {Title: "until a unicast worm arrives", X: x, Y: cycles},
			{Title: "until all have arrived", X: x, Y: cycles}, {Title: "deadlocks", X: x, Y: linear("share", "")},
		},
	}
	type result struct{ cycles [3]float64 } // negative with a deadlock
	results := make([]result, len(o.scheme)*len(o.unicasts)*o.draws)
	for _, word := range o.scheme {
		if _, ok := switchSchemes[word]; !ok {
			return nil, fmt.Errorf("--scheme %q: want idle, idle-tree, interrupt or flush", word)
		}
	}
	err := lab.Each(len(results), func(_ context.Context, i int) (err error) {
		draw, unicasts, word := i%o.draws, o.unicasts[i/o.draws%len(o.unicasts)], o.scheme[i/o.draws/len(o.unicasts)]
		results[i].cycles, err = o.run(lab, word, unicasts, draw)
		return err
	})
	if err != nil {
		return nil, err
	}
	for s, word := range o.scheme {
		for k, prefix := range []string{switchMulticast, switchUnicast, switchAll, switchStuck} {
			curve := newCurve(prefix+word, o.unicasts)
			for u := range o.unicasts {
				var values, stuck []float64
				for _, r := range results[(s*len(o.unicasts)+u)*o.draws:][:o.draws] {
					if dead := r.cycles[2] < 0; dead {
						stuck = append(stuck, 1)
					} else {
						stuck, values = append(stuck, 0), append(values, r.cycles[k%3])
					}
				}
				if k == 3 {
					values = stuck
				}
				if len(values) > 0 {
					estimate(&curve.Points[u], values)
				}
				if curve.Points[u].N < o.draws {
					// These draws are not those of other curves.
					curve.Points[u].Draws = nil
				}
			}
			f.Panels[k].Curves = append(f.Panels[k].Curves, curve)
		}
	}
	return f, nil
}

// run simulates a draw: mean cycles of multicast and of unicast, and cycles until all arrived.
func (o *switchSweep) run(lab *Lab, word string, unicasts, draw int) (cycles [3]float64, err error) {
	seed := stream(lab.Seed, "gerla switches", draw)
	var net *gerlaNet
	if o.network.file == "" && o.network.name == "random" {
		spec := o.spec
		spec.Seed = seed
		net, err = withRoutes(gen.Irregular(spec))
	} else {
		net, err = o.network.net(lab, "up-down")
	}
	if err != nil {
		return cycles, err
	}
	scheme := switchSchemes[word]
	h := net.f.CAPorts()
	if o.members < 1 || o.members >= len(h) {
		return cycles, fmt.Errorf("--members %d: want 1 to %d, all hosts but the root's", o.members, len(h)-1)
	}
	rng := rand.New(rand.NewPCG(seed, 2))
	var ways, pairs [][]fabric.PortID
	for range o.multicasts {
		way := h[:1:1]
		for _, k := range rng.Perm(len(h) - 1)[:o.members] {
			way = append(way, h[k+1])
		}
		ways = append(ways, way)
	}
	var starts []int
	for len(pairs) < unicasts {
		src, dst := h[1+rng.IntN(len(h)-1)], h[1+rng.IntN(len(h)-1)]
		if start := rng.IntN(o.within); src != dst {
			pairs, starts = append(pairs, []fabric.PortID{src, dst}), append(starts, start)
		}
	}
	worms, err := net.worms(net.tree, o.flits, ways...)
	if err != nil {
		return cycles, err
	}
	tables := net.tables
	if scheme.tree {
		tables = net.tree
	}
	more, err := net.worms(tables, o.flits, pairs...)
	if err != nil {
		return cycles, err
	}
	for k, start := range starts {
		more[k].Start = start
	}
	worms = append(worms, more...)
	r, err := lan.RunSwitches(worms, lan.SwitchOptions{Fabric: net.f, Buffer: o.buffer, Remedy: scheme.remedy, FlagAfter: o.flagAfter, Timeout: o.timeout, Seed: seed})
	if err != nil {
		return cycles, err
	}
	cycles[2] = float64(r.Cycles)
	if r.Deadlock != nil {
		cycles[2] = -1
	}
	for i, done := range r.Done {
		kind, n := 0, o.multicasts
		if i >= o.multicasts {
			kind, n = 1, unicasts
		}
		cycles[kind] += float64(done-worms[i].Start) / float64(n)
	}
	return cycles, nil
}

var headerModel = Model{
	Name: "tree-header", Short: "the header of a multicast worm that switches copy",
	Long: `A tree of ports as a header of ports and pointers, byte by byte, with what each switch stamps
on its copies; or a header as a tree.`,
	Example: "tree-header --tree '2(1(5)4)7'",
	define: func(flags *pflag.FlagSet) func(lab *Lab) (*Figure, error) {
		tree := flags.String("tree", "1(2 4) 3(5(1 2)) 6", "`TREE`: ports, and behind each in brackets those of the switch that it leads to")
		header := flags.String("header", "", "in its place a header, `HEX`")
		return func(*Lab) (*Figure, error) {
			f := &Figure{}
			bytes, err := hex.DecodeString(strings.ReplaceAll(*header, " ", ""))
			if err != nil {
				return nil, fmt.Errorf("--header %q: %w", *header, err)
			}
			t, rest := myrinet.TreeRoute(nil), ""
			if len(bytes) > 0 {
				t, err = splitTree(bytes)
			} else if t, rest, err = parseTree(*tree); err == nil && rest != "" {
				err = fmt.Errorf("--tree %q: want ports, with brackets around those behind each, not %q", *tree, rest)
			}
			if err != nil {
				return nil, err
			}
			whole, err := myrinet.AppendTree(nil, t)
			if err != nil {
				return nil, err
			}
			f.add("tree", "", formatTree(t))
			f.add("header", "", fmt.Sprintf("% x", whole))
			return f, stampRows(f, "switch", whole)
		}
	},
}

// stampRows adds a row for each copy that a switch sends: its header.
func stampRows(f *Figure, at string, header []byte) error {
	stamps, _, err := myrinet.Split(header)
	if err != nil {
		return err
	}
	for _, s := range stamps {
		f.add(fmt.Sprintf("%s, copy by port %d", at, s.Port), "", fmt.Sprintf("% x", s.Header))
		if err := stampRows(f, fmt.Sprintf("behind port %d of %s", s.Port, at), s.Header); err != nil {
			return err
		}
	}
	return nil
}

// parseTree reads ports up to a closing bracket, and returns the text from there on.
func parseTree(text string) (t myrinet.TreeRoute, rest string, err error) {
	for text = strings.TrimLeft(text, " ,"); text != "" && text[0] != ')'; text = strings.TrimLeft(text, " ,") {
		n := len(text) - len(strings.TrimLeft(text, "0123456789"))
		var b myrinet.Branch
		if _, err := fmt.Sscan(text[:n], &b.Port); err != nil {
			return nil, text, fmt.Errorf("a tree has ports from 0 to 254, not %q", text)
		}
		if text = text[n:]; strings.HasPrefix(text, "(") {
			if b.Below, text, err = parseTree(text[1:]); err == nil && text == "" {
				err = fmt.Errorf("a bracket behind port %d is not closed", b.Port)
			}
			if err != nil {
				return nil, text, err
			}
			text = text[1:]
		}
		t = append(t, b)
	}
	return t, text, nil
}

// formatTree writes a tree as parseTree reads it.
func formatTree(t myrinet.TreeRoute) string {
	var parts []string
	for _, b := range t {
		says := fmt.Sprint(b.Port)
		if b.Below != nil {
			says += "(" + formatTree(b.Below) + ")"
		}
		parts = append(parts, says)
	}
	return strings.Join(parts, " ")
}
