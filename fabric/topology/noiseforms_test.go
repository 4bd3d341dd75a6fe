package topology_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/topology"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/sminterface/dump"
	"github.com/ibweave/ibweave/sminterface/ibdiagnet"
)

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

// onePort says whether a switch has one port: without types it looks like an adapter.
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

// twins says whether two nodes with a cable have the same description and LID.
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
