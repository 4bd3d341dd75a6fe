package counters_test

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/ibweave/ibweave/audit/counters"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/sminterface/dump"
	"github.com/ibweave/ibweave/sminterface/ibdiagnet"
	"github.com/ibweave/ibweave/verify"
)

// counted has counters of ports as a port sends them: in PortCounters, and in 64 bits.
type counted map[fabric.PortID]map[dump.Counter][2]uint64

func (c counted) set(p fabric.PortID, k dump.Counter, short, wide uint64) {
	if c[p] == nil {
		c[p] = map[dump.Counter][2]uint64{}
	}
	c[p][k] = [2]uint64{short, wide}
}

// shown are the counters that the texts below have.
var shown = []dump.Counter{dump.SymbolErrors, dump.LinkRecovers, dump.LinkDowned, dump.RcvErrors, dump.LocalIntegrityErrors}

// perfquery writes counters as perfquery -x and perfquery print them, of all ports with a cable
// (see TestReadRealPerfQuery in package dump).
func (c counted) perfquery(f *fabric.Fabric) []byte {
	var b []byte
	for n := range fabric.NodeID(f.NumNodes()) {
		for p := range f.Cabled(n) {
			lid := f.LID(p)
			if f.IsSwitch(n) {
				lid = f.LID(f.PortBase(n))
			}
			for i, head := range []string{"# Port counters: ", "# Port extended counters: "} {
				b = fmt.Appendf(b, "%sLid %d port %d (CapMask: 0x5300)\nPortSelect:......................%d\n", head, lid, f.Num(p), f.Num(p))
				for _, k := range shown {
					b = fmt.Appendf(b, "%s%d\n", k.Info().Name+":"+strings.Repeat(".", 32-len(k.Info().Name)), c[p][k][i])
				}
			}
		}
	}
	return b
}

// ibqueryerrors writes the same as ibqueryerrors prints it (see TestReadRealQueryErrors there), which has no more
// than PortCounters.
func (c counted) ibqueryerrors(f *fabric.Fabric) []byte {
	var b []byte
	for n := range fabric.NodeID(f.NumNodes()) {
		if f.IsSwitch(n) {
			b = fmt.Appendf(b, "Errors for %#x %q\n", uint64(f.Node(n).GUID), f.Name(n).Text)
		} else {
			b = fmt.Appendf(b, "Errors for %q\n", f.Name(n).Text)
		}
		for p := range f.Cabled(n) {
			line := ""
			for _, k := range shown {
				if v := c[p][k][0]; v > 0 {
					line += fmt.Sprintf(" [%s == %d]", k.Info().Name, v)
				}
			}
			guid := f.PortGUID(p)
			if f.IsSwitch(n) {
				guid = f.Node(n).GUID
			}
			if line != "" {
				b = fmt.Appendf(b, "   GUID %#x port %d:%s\n", uint64(guid), f.Num(p), line)
			}
		}
	}
	return append(b, "\n## Summary: 312 nodes checked, 214 bad nodes found\n"...)
}

// ibdiagnet writes a run's db_csv with a section PM_INFO.
func (c counted) ibdiagnet(t *testing.T, f *fabric.Fabric) []byte {
	var b bytes.Buffer
	short.Check(t, ibdiagnet.Write(&b, f))
	b.WriteString("\nSTART_PM_INFO\nNodeGUID,PortGUID,PortNumber")
	for _, k := range shown {
		fmt.Fprintf(&b, ",%s,%sExt", k.Info().Name, k.Info().Name)
	}
	b.WriteString("\n")
	for n := range fabric.NodeID(f.NumNodes()) {
		for p := range f.Cabled(n) {
			fmt.Fprintf(&b, "%s,%s,%d", f.Node(n).GUID, f.Node(n).GUID, f.Num(p))
			for _, k := range shown {
				fmt.Fprintf(&b, ",%d,0x%016x", c[p][k][0], c[p][k][1])
			}
			b.WriteString("\n")
		}
	}
	b.WriteString("END_PM_INFO\n")
	return b.Bytes()
}

// On a fabric with 14 ports of symbol errors, 3 counters that wrapped or stand at their end, and 200 restarted
// hosts, the first rows that counters prints are those 14 ports, in whatever form the counters come.
func TestFirstRows(t *testing.T) {
	whole, err := gen.FatTree(gen.FatTreeSpec{Radix: 24, Levels: 2})
	f, tables := route(t, whole, err, "updn")
	for seed := range uint64(3) {
		r := rand.New(rand.NewPCG(seed, 46))
		hosts := slices.Clone(f.CAPorts())
		r.Shuffle(len(hosts), func(i, j int) { hosts[i], hosts[j] = hosts[j], hosts[i] })
		c := counted{}
		for _, p := range hosts[:200] { // a restart sets the counters of the host to 0
			n := 1 + r.Uint64N(3)
			c.set(f.Peer(p), dump.LinkDowned, n, n)
			c.set(f.Peer(p), dump.LinkRecovers, n, n)
			if r.IntN(2) == 0 {
				c.set(p, dump.LinkDowned, n, n)
			}
		}
		bad := slices.Clone(hosts[200:207])
		for i := range 7 { // and as many between switches
			bad = append(bad, f.Channels()[80*i+r.IntN(80)])
		}
		want := map[string]bool{}
		for _, p := range bad {
			n := 1 + r.Uint64N(1e5)
			c.set(p, dump.SymbolErrors, min(n, 65535), n)
			if r.IntN(2) == 0 { // a version that leaves the counter of 64 bits at 0
				c.set(p, dump.SymbolErrors, min(n, 65535), 0)
			}
			want[verify.EndpointOf(f, p).Unquoted()] = true
		}
		for i, p := range hosts[207:210] {
			c.set(p, []dump.Counter{dump.SymbolErrors, dump.RcvErrors, dump.LocalIntegrityErrors}[i], 0, 1<<64-40)
			c.set(p, dump.LinkDowned, 255, 0)
		}
		for form, data := range map[string][]byte{"perfquery": c.perfquery(f), "ibqueryerrors": c.ibqueryerrors(f), "ibdiagnet": nil} {
			var read *dump.Counters
			if data == nil {
				got, err := ibdiagnet.ReadCounters(form, bytes.NewReader(c.ibdiagnet(t, f)), f, ibdiagnet.Options{})
				if err != nil {
					t.Fatal(err)
				}
				read = got.Counters
			} else if read, _, err = dump.ReadCounters(form, data, f, dump.Options{}); err != nil {
				t.Fatal(err)
			}
			d := counters.NewDocument(f, explain(t, f, tables, read, counters.Options{Hot: 1.5, Top: 20}), nil)
			d.Reading, d.Tables, d.Asked.Top = "counts", true, 20
			var b text.Sheet
			d.Print(&b)
			lines := strings.Split(b.String(), "\n")
			got := map[string]bool{}
			for _, line := range lines[4:18] {
				cells := strings.Split(strings.TrimSpace(line), "  ")
				got[cells[0]] = true
			}
			if !maps.Equal(got, want) || !strings.HasPrefix(lines[2], "14 cables have errors on the wire") {
				t.Fatalf("seed %d, %s: want %v, got\n%s", seed, form, slices.Sorted(maps.Keys(want)), strings.Join(lines[:25], "\n"))
			}
			if !strings.Contains(b.String(), "\n200 hosts were restarted") || !strings.Contains(b.String(), "at least 255") {
				t.Errorf("seed %d, %s:\n%s", seed, form, b.String())
			}
			if form != "ibqueryerrors" && strings.Count(b.String(), "wrapped  ") != 3 {
				t.Errorf("seed %d, %s: want 3 values that wrapped:\n%s", seed, form, b.String())
			}
		}
	}
}
