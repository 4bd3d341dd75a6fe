package topology_test

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/fabric/topology"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/mesh"
	"github.com/ibweave/ibweave/routing/banyan"
	"github.com/ibweave/ibweave/sminterface/dump"
	"github.com/ibweave/ibweave/sminterface/ibdiagnet"
)

// generated draws a fabric of any kind with any options, with LIDs or without.
func generated(t *rapid.T) *fabric.Fabric {
	seed := rapid.Uint64().Draw(t, "seed of the fabric")
	n := func(low, high int, what string) int { return rapid.IntRange(low, high).Draw(t, what) }
	yes := func(what string) bool { return rapid.Bool().Draw(t, what) }
	tree := func() gen.TreeSpec {
		pods := rapid.SliceOfN(rapid.IntRange(1, 3), 1, 3).Draw(t, "pods")
		groups, each := n(1, 2, "groups"), n(1, 2, "spines below a group")
		spec := gen.TreeSpec{
			Ports: 40, Pods: pods, Hosts: n(0, 3, "hosts"), Rails: n(1, 3, "rails"), Spines: groups * each, Parallel: n(1, 2, "parallel"), Groups: groups,
			Cores: n(min(len(pods)-1, 1), 2, "cores"),
		}
		if spec.Cores > 0 {
			spec.RailSpines = yes("spines of rails")
		}
		return spec
	}
	kinds := map[string]func() (*fabric.Fabric, error){
		"banyan": func() (*fabric.Fabric, error) { return banyan.Banyan(n(2, 3, "stages"), yes("wrap-around")) },
		"cube":   func() (*fabric.Fabric, error) { return mesh.Hypercube(n(1, 4, "dim"), n(0, 2, "hosts")) },
		"director": func() (*fabric.Fabric, error) {
			spec := tree()
			spec.Directors = true
			return gen.Tree(spec)
		},
		"fat tree": func() (*fabric.Fabric, error) {
			return gen.FatTree(gen.FatTreeSpec{Radix: 2 * n(2, 4, "radix"), Levels: n(2, 3, "levels")})
		},
		"grid": func() (*fabric.Fabric, error) {
			return mesh.Generate(mesh.Spec{Dims: []int{n(2, 5, "x"), n(2, 5, "y")}, Hosts: n(0, 3, "hosts")})
		},
		"irregular": func() (*fabric.Fabric, error) {
			return gen.Irregular(gen.IrregularSpec{Switches: 2 * n(2, 10, "switches"), Degree: 3, Hosts: n(0, 3, "hosts"), Seed: seed})
		},
		"lattice":    func() (*fabric.Fabric, error) { return gen.Lattice(n(2, 20, "switches"), seed) },
		"ring":       gen.Myrinet4,
		"shufflenet": func() (*fabric.Fabric, error) { return gen.Shufflenet(2, n(2, 3, "k")) },
		"tree":       func() (*fabric.Fabric, error) { return gen.Tree(tree()) },
	}
	f := short.Must(kinds[rapid.SampledFrom(slices.Sorted(maps.Keys(kinds))).Draw(t, "kind")]())(t)
	f = optional(t, f, seed)
	if n(0, 3, "LIDs") > 0 {
		f = short.Must(lft.AssignLIDs(f, lft.LIDOptions{Policy: lft.DenseLIDs, LMC: n(0, 2, "LMC")}))(t)
	}
	return f
}

// optional draws any options. Service hosts and cables to drop are fewer where the fabric
// lacks ports or cables for them.
func optional(t *rapid.T, f *fabric.Fabric, seed uint64) *fabric.Fabric {
	o := gen.Options{
		Seed:             seed,
		Fill:             rapid.IntRange(0, 100).Draw(t, "fill"),
		ServiceHosts:     rapid.IntRange(0, 3).Draw(t, "service hosts"),
		Planes:           rapid.SampledFrom([]int{0, 0, 0, 2, 4}).Draw(t, "planes"),
		DropLinks:        rapid.IntRange(0, 3).Draw(t, "cables to drop"),
		Labels:           rapid.Bool().Draw(t, "labels"),
		Names:            rapid.SampledFrom(append([]string{""}, gen.Styles...)).Draw(t, "names"),
		AggregationNodes: rapid.Bool().Draw(t, "aggregation nodes"),
		Speeds:           rapid.SliceOfN(rapid.SampledFrom([]fabric.Speed{fabric.QDR, fabric.FDR, fabric.EDR, fabric.HDR, fabric.NDR, fabric.XDR}), 0, 3).Draw(t, "speeds"),
	}
	for {
		g, err := o.Apply(f)
		switch {
		case err == nil:
			distinct(t, g)
			return g
		case o.ServiceHosts > 0 && strings.Contains(err.Error(), " service hosts: want "):
			o.ServiceHosts--
		case o.DropLinks > 0 && strings.Contains(err.Error(), " links to drop: want "):
			o.DropLinks--
		default:
			t.Fatalf("%+v: %v", o, err)
		}
	}
}

// distinct fails if two nodes or end ports have the same GUID. Port 0 of a switch has that
// of its node.
func distinct(t *rapid.T, f *fabric.Fabric) {
	seen := map[fabric.GUID]bool{}
	once := func(g fabric.GUID) {
		if seen[g] {
			t.Fatalf("two nodes or ports have GUID %s", g)
		}
		seen[g] = true
	}
	for n := range fabric.NodeID(f.NumNodes()) {
		once(f.Node(n).GUID)
	}
	f.EndPorts(func(p fabric.PortID) {
		if !f.IsSwitch(f.Owner(p)) {
			once(f.PortGUID(p))
		}
	})
}

// found is what a reader noticed, in the words of noisyText.
func found(t *rapid.T, f *fabric.Fabric, problems []fabric.Problem) (x noisyText) {
	for _, p := range problems {
		n, _ := f.NodeByGUID(p.Node)
		switch p.Kind {
		case fabric.ForeignLines:
			x.Foreign += p.Count
		case fabric.SweepTimeout:
			x.Timeouts += p.Count
		case fabric.SweepError:
			x.Errors += p.Count
		case fabric.InvalidLID:
			x.InvalidLIDs = append(x.InvalidLIDs, f.Port(n, p.Port))
		case fabric.Loopback:
			x.Loopbacks = append(x.Loopbacks, f.Port(n, p.Port))
		default:
			t.Errorf("nothing deserves %s", p.String())
		}
	}
	slices.Sort(x.InvalidLIDs)
	slices.Sort(x.Loopbacks)
	return x
}

// Any fabric of the generators with any noise is read back as the same fabric, with what
// the noise deserves and nothing else, leniently or not; a strict read takes it only where
// no noise can be seen.
func TestNoise(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := generated(t)
		noisy := short.Must(makeNoise(f, rapid.Uint64().Draw(t, "seed")))(t)
		short.MustEqual(t, topology.Recognize(noisy.Data), topology.Stanzas, "not recognized")
		for _, lenient := range []bool{false, true} {
			g, problems, err := topology.Parse("in", noisy.Data, topology.Options{Lenient: lenient})
			if err != nil {
				t.Fatalf("%v\n%s", err, noisy.Data)
			}
			want, got := topology.AppendLabelled(nil, noisy.Fabric), topology.AppendLabelled(nil, g)
			short.EqualList(t, want, got, "(-want +got)", noisy.Data)
			x := found(t, g, problems)
			x.Data, x.Fabric = noisy.Data, noisy.Fabric
			if diff := cmp.Diff(*noisy, x, cmp.Comparer(func(a, b *fabric.Fabric) bool { return a == b })); diff != "" {
				t.Fatalf("(-want +got)\n%s\n%s", diff, noisy.Data)
			}
		}
		_, _, err := topology.Parse("in", noisy.Data, topology.Options{Strict: true})
		if err == nil && noisy.Foreign+noisy.Timeouts+noisy.Errors+len(noisy.InvalidLIDs)+len(noisy.Loopbacks) > 0 {
			t.Fatalf("a strict read takes noise\n%s", noisy.Data)
		}
	})
}

func TestSameSeedSameBytes(t *testing.T) {
	f := short.Must(gen.FatTree(gen.FatTreeSpec{Radix: 8, Levels: 2}))(t)
	for seed := range uint64(20) {
		a := short.Must(makeNoise(f, seed))(t)
		short.EqualList(t, a.Data, short.Must(makeNoise(f, seed))(t).Data, "seed", seed, "other bytes")
	}
}

// forms are the text forms of a fabric: how each is written and read, and what of a
// fabric it holds.
var forms = []struct {
	name  string
	write func(*bytes.Buffer, *fabric.Fabric) error
	// read returns the fabric and how many problems the reader found.
	read func([]byte) (*fabric.Fabric, int, error)
	held func(*fabric.Fabric) []byte
}{
	{
		"ibnetdiscover",
		func(b *bytes.Buffer, f *fabric.Fabric) error { return topology.Write(b, f) },
		readTopology, unlabelled,
	},
	{
		"ibnetdiscover with labels",
		func(b *bytes.Buffer, f *fabric.Fabric) error { return topology.WriteLabelled(b, f) },
		readTopology, labelled,
	},
	{
		"db_csv",
		func(b *bytes.Buffer, f *fabric.Fabric) error { return ibdiagnet.Write(b, f) },
		func(data []byte) (*fabric.Fabric, int, error) {
			d, err := ibdiagnet.Read("in", bytes.NewReader(data), ibdiagnet.Options{Strict: true})
			if err != nil {
				return nil, 0, err
			}
			return d.Fabric, len(d.Problems), nil
		},
		labelled,
	},
	{
		"subnet list",
		func(b *bytes.Buffer, f *fabric.Fabric) error {
			return dump.WriteSubnetList(b, f)
		},
		func(data []byte) (*fabric.Fabric, int, error) {
			f, problems, err := topology.Parse("in", data, topology.Options{})
			return f, len(problems), err
		},
		// OpenSM prints ?? for 2x.
		func(f *fabric.Fabric) []byte {
			return bytes.ReplaceAll(unlabelled(withoutLMC(f)), []byte(" 2x"), []byte(" ??"))
		},
	},
}

// lists are the forms that list ports or links. What they hold is compared port by port,
// since they do not say which adapter a port is on.
var lists = []struct {
	name  string
	write func([]byte, *fabric.Fabric) []byte
	form  topology.Form
	types bool // routers are told from adapters
	noise noisyList
}{
	{"ports", topology.AppendPortList, topology.PortList, true, decimalList(topology.AppendPortList)},
	{"iblinkinfo", linkInfo, topology.LinkInfo, true, decimalList(linkInfo, "Switch: ", "CA: ", "Router: ")},
	{"iblinkinfo -l", linkLines, topology.LinkInfo, false, decimalList(linkLines)},
	{"links of UFM", topology.AppendUFMLinks, topology.UFMLinks, false, noisyList{Append: topology.AppendUFMLinks}},
}

func linkInfo(b []byte, f *fabric.Fabric) []byte  { return topology.AppendLinkInfo(b, f, false) }
func linkLines(b []byte, f *fabric.Fabric) []byte { return topology.AppendLinkInfo(b, f, true) }

func subnetList(b []byte, f *fabric.Fabric) []byte {
	out := bytes.NewBuffer(b)
	if err := dump.WriteSubnetList(out, f); err != nil {
		panic(err) // a Buffer has none
	}
	return out.Bytes()
}

// Any fabric of the generators in any list with any noise is read back as what the list has
// of it, with what the noise deserves and nothing else, leniently or not.
func TestListNoise(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := generated(t)
		seed := rapid.Uint64().Draw(t, "seed")
		at := rapid.IntRange(0, len(lists)).Draw(t, "list")
		for _, list := range lists[at:min(at+1, len(lists))] {
			if onePort(f) && !list.types || twins(f) && list.name == "iblinkinfo" {
				continue
			}
			noisy := short.Must(makeNoisyList(f, list.noise, seed))(t)
			if twins(noisy.Fabric) && list.name == "iblinkinfo" {
				continue
			}
			for _, lenient := range []bool{false, true} {
				g, problems, err := topology.Parse("in", noisy.Data, topology.Options{Lenient: lenient})
				if err != nil && g == nil && f.NumLinks() == 0 {
					continue // nothing of it is in the list
				}
				if err != nil {
					t.Fatalf("%s: %v\n%s", list.name, err, noisy.Data)
				}
				short.Diff(t, inList(g, list.form, list.types), inList(noisy.Fabric, list.form, list.types), list.name, noisy.Data)
				deserved(t, noisy, g, problems)
			}
		}
		if at < len(lists) || f.NumLinks() == 0 {
			return
		}
		noisy := short.Must(makeNoisyList(f, subnetNoise(subnetList), seed))(t)
		for _, lenient := range []bool{false, true} {
			g, odd, err := topology.Parse("in", noisy.Data, topology.Options{Lenient: lenient})
			if err != nil {
				t.Fatalf("%v\n%s", err, noisy.Data)
			}
			want := bytes.ReplaceAll(unlabelled(withoutLMC(noisy.Fabric)), []byte(" 2x"), []byte(" ??"))
			short.Diff(t, string(unlabelled(g)), string(want), noisy.Data)
			deserved(t, noisy, g, odd)
		}
	})
}

// deserved checks that problems are what the noise deserves.
func deserved(t *rapid.T, noisy *noisyText, g *fabric.Fabric, problems []fabric.Problem) {
	// Lists may not say which adapter a port is on: LIDs that cannot be are counted.
	x := noisyText{Data: noisy.Data}
	for _, p := range problems {
		switch p.Kind {
		case fabric.ForeignLines:
			x.Foreign += p.Count
		case fabric.SweepTimeout:
			x.Timeouts += p.Count
		case fabric.SweepError:
			x.Errors += p.Count
		case fabric.InvalidLID:
			n, ok := g.NodeByGUID(p.Node)
			if !ok {
				t.Fatalf("no node %s", p.Node)
			}
			x.InvalidLIDs = append(x.InvalidLIDs, g.Port(n, p.Port))
		default:
			t.Fatalf("nothing deserves %s", p.String())
		}
	}
	ends := func(f *fabric.Fabric, ports []fabric.PortID) (list []string) {
		for _, p := range ports {
			list = append(list, f.PortGUID(p).String())
		}
		slices.Sort(list)
		return list
	}
	if x.Foreign != noisy.Foreign || x.Timeouts != noisy.Timeouts || x.Errors != noisy.Errors {
		t.Fatalf("%d foreign lines, %d timeouts, %d errors; want %d, %d, %d\n%s", x.Foreign, x.Timeouts, x.Errors, noisy.Foreign, noisy.Timeouts, noisy.Errors, noisy.Data)
	}
	short.Diff(t, ends(g, x.InvalidLIDs), ends(noisy.Fabric, noisy.InvalidLIDs), "LIDs that cannot be", noisy.Data)
}

// onePort returns true if a switch has one port: without types it looks like an adapter.
func onePort(f *fabric.Fabric) bool {
	return slices.ContainsFunc(f.Switches(), func(s fabric.NodeID) bool { return f.Node(s).NumPorts == 1 })
}

// inList is what a list says of a fabric, a line for each switch and each port with a cable.
func inList(f *fabric.Fabric, form topology.Form, types bool) string {
	ufm := form == topology.UFMLinks
	var lines []string
	for p := range fabric.PortID(f.NumPorts()) {
		n, peer := f.Owner(p), f.Peer(p)
		node := f.Node(n)
		if p == f.PortBase(n) && f.IsSwitch(n) && !ufm {
			lines = append(lines, fmt.Sprintf("%s %s has %d ports", f.PortGUID(p), node.Description, node.NumPorts))
		}
		if peer == fabric.NoPort {
			continue
		}
		end, link, label := endOf(f, p), f.Link(p), ""
		kind := node.Type
		if !types && kind == fabric.Router {
			kind = fabric.CA
		}
		if ufm {
			link.Speed = fabric.SpeedUnknown
			if strings.Contains(f.Label(p), "/") {
				label = f.Label(p)
			}
		}
		line := fmt.Sprintf("%s %q %s[%d]%s %dx%s to %s[%d]", kind, node.Description, f.PortGUID(end), f.Num(p), label, link.Width, link.Speed, f.PortGUID(endOf(f, peer)), f.Num(peer))
		if !ufm {
			line += fmt.Sprintf(" LID %d", f.LID(end))
		}
		lines = append(lines, line)
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// endOf is the end port that a port has GUID and LID of.
func endOf(f *fabric.Fabric, p fabric.PortID) fabric.PortID {
	if n := f.Owner(p); f.IsSwitch(n) {
		return f.PortBase(n)
	}
	return p
}

// twins returns true if two nodes with a cable have the same description and LID.
func twins(f *fabric.Fabric) bool {
	seen := map[string]fabric.NodeID{}
	for p := range fabric.PortID(f.NumPorts()) {
		if f.Peer(p) == fabric.NoPort {
			continue
		}
		n := f.Owner(p)
		key := fmt.Sprintf("%s %d", f.Node(n).Description, f.LID(endOf(f, p)))
		if other, there := seen[key]; there && other != n {
			return true
		}
		seen[key] = n
	}
	return false
}

// Any fabric of the generators is read back from each list as what the list has of it.
// iblinkinfo without -l cannot tell nodes with one description and LID apart, and says so.
func TestLists(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := generated(t)
		at := rapid.IntRange(0, len(lists)-1).Draw(t, "list")
		for _, list := range lists[at : at+1] {
			if list.name == "iblinkinfo -l" && onePort(f) {
				continue
			}
			text := list.write(nil, f)
			if form := topology.Recognize(text); form != list.form && len(f.CAPorts())+f.NumLinks() > 0 {
				t.Fatalf("%s: taken for form %d\n%s", list.name, form, text)
			}
			g, problems, err := topology.Parse("in", text, topology.Options{})
			if err != nil && list.name == "iblinkinfo" && twins(f) && strings.Contains(err.Error(), "want iblinkinfo -l, which has GUIDs") {
				continue
			}
			problems = slices.DeleteFunc(problems, func(p fabric.Problem) bool {
				return p.Kind == fabric.InvalidLID && strings.HasPrefix(p.Message, "LID 0:")
			})
			if err != nil || len(problems) > 0 {
				t.Fatalf("%s: %v, %v\n%s", list.name, problems, err, text)
			}
			short.Diff(t, inList(g, list.form, list.types), inList(f, list.form, list.types), list.name, text)
			short.EqualList(t, text, list.write(nil, f), list.name, "written again it is not the same")
		}
	})
}

func readTopology(data []byte) (*fabric.Fabric, int, error) {
	f, problems, err := topology.Parse("in", data, topology.Options{Strict: true})
	return f, len(problems), err
}

func labelled(f *fabric.Fabric) []byte   { return topology.AppendLabelled(nil, f) }
func unlabelled(f *fabric.Fabric) []byte { return topology.Append(nil, f) }

// withoutLMC is f with one LID for each port.
func withoutLMC(f *fabric.Fabric) *fabric.Fabric {
	lids := make([]fabric.LID, f.NumPorts())
	for p := range lids {
		lids[p] = f.LID(fabric.PortID(p))
	}
	g, err := f.WithLIDs(lids, make([]uint8, len(lids)))
	if err != nil {
		panic(err) // fewer LIDs than f has cannot overlap
	}
	return g
}

// Any fabric of the generators is read back from each form as what the form holds of it,
// without a finding, and twice the same bytes are written.
func TestForms(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := generated(t)
		for _, form := range forms {
			var text, again bytes.Buffer
			short.Check(t, form.write(&text, f))
			g, problems, err := form.read(text.Bytes())
			if err != nil || problems > 0 {
				t.Fatalf("%s: %d problems, %v\n%s", form.name, problems, err, &text)
			}
			short.Diff(t, string(form.held(g)), string(form.held(f)), form.name, &text)
			if err := form.write(&again, f); err != nil || !bytes.Equal(text.Bytes(), again.Bytes()) {
				t.Fatalf("%s: written again it is not the same (%v)", form.name, err)
			}
		}
	})
}
