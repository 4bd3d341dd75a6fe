package dump

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/topology"
	"github.com/ibweave/ibweave/internal/short"
)

// tracedFabric is the fabric of testdata/ibtracert.txt, which ibtracert printed on ibsim.
func tracedFabric(t testing.TB) (*fabric.Fabric, string) {
	t.Helper()
	f, _ := short.Must2(topology.Parse("fabric", short.Must(os.ReadFile("testdata/ibtracert-fabric.txt"))(t), topology.Options{}))(t)
	return f, string(short.Must(os.ReadFile("testdata/ibtracert.txt"))(t))
}

// Traces with and without -n and -v are read, between a shell's and libraries' lines, and one that found no path is none.
func TestReadTraces(t *testing.T) {
	f, text := tracedFabric(t)
	list, problems, err := ReadTraces("traces", []byte(text), f, Options{})
	if err != nil || len(problems) > 0 || len(list) != 8 {
		t.Fatal(list, problems, err)
	}
	for i, hops := range []int{3, 3, 3, 5, 3, 0, 3, 3} {
		short.Equal(t, len(list[i].Out), hops, "hops")
	}
	first, last := &list[0], &list[7]
	short.Equal(t, f.LID(first.Source), 10, "LID of the source")
	short.Equal(t, f.LID(first.Destination), 18, "LID of the destination")
	if !slices.Equal(list[1].Out, first.Out) || first.Destination != last.Source || f.Peer(first.Out[2]) != last.Out[0] {
		t.Error(list)
	}
}

// What is wrong is an error with its line; a lenient read leaves that trace out.
func TestReadTracesRefused(t *testing.T) {
	f, text := tracedFabric(t)
	whole := text[strings.Index(text, "From"):strings.Index(text, "rc 0")]
	for _, c := range []struct{ old, now, want string }{
		{"", "", ""},
		{"To ca {0x0000000000100010} portnum 1 lid 18-18 \"host 2,2\"\n", "", `traces:4: the last trace has no line that begins with To`},
		{"200006} portnum 0", "299999} portnum 0", `traces:1: the fabric has no node 0x0000000000299999`},
		{"portnum 0", "portnum 2", `traces:1: "switch 2,0" has no end port 2`},
		{"[2] -> switch port {0x0000000000200007}", "[4] -> switch port {0x0000000000200007}", `traces:2: the fabric has no cable from "switch 2,0"[4] to port 4 of GUID 0x0000000000200007`},
		{"}[4] lid", "}[3] lid", `traces:2: the fabric has no cable from "switch 2,0"[2] to port 3 of GUID 0x0000000000200007`},
		{"lid 10-10", "lid 9-9", `traces:1: "switch 2,0"[0] has LID 10 in the fabric, 9 here`},
		{"[5] -> ca", "[77] -> ca", `traces:4: "switch 2,2" has no port 77`},
		{"To ca {0x0000000000100010} portnum 1 lid 18", "To ca {0x0000000000100000} portnum 1 lid 2", `traces:5: the trace ends at "host 0,0"[1], but the line before leads to another port`},
		{"[2] -> switch port {", "[2] -> switch {", `traces:2: want a line of a trace by unicast`},
	} {
		data := []byte(strings.Replace(whole, c.old, c.now, 1))
		_, _, err := ReadTraces("traces", data, f, Options{})
		if c.want == "" != (err == nil) || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %s", err, c.want)
		}
		list, problems, err := ReadTraces("traces", slices.Concat(data, []byte(whole)), f, Options{Lenient: true})
		if want := map[bool]int{true: 2, false: 1}[c.want == ""]; err != nil || len(list) != want || len(problems) != 2-want {
			t.Errorf("%s: %d traces, %v, %v", c.want, len(list), problems, err)
		}
	}
	_, _, err := ReadTraces("traces", []byte(whole[strings.Index(whole, "\n")+1:]), f, Options{})
	if err == nil || !strings.Contains(err.Error(), "traces:4: a trace without a line that begins with From") {
		t.Error(err)
	}
	if list, _, err := ReadTraces("traces", []byte("[2026-01-01] x\n"+whole+"[root@head ~]# date\n"), f, Options{}); err != nil || len(list) != 1 {
		t.Error(list, err)
	}
	_, _, err = ReadTraces("traces", []byte("rc 255\n"), f, Options{})
	if err == nil || !strings.Contains(err.Error(), "no trace; want what ibtracert prints") {
		t.Error(err)
	}
}

// FuzzReadTraces: an error means no result; each trace leads along cables from one of its ends to the other.
func FuzzReadTraces(f *testing.F) {
	fab, text := tracedFabric(f)
	f.Add([]byte(text))
	f.Fuzz(func(t *testing.T, data []byte) {
		list, ok := readTwice(t, data, of(fab, ReadTraces), deeply)
		if !ok {
			return
		}
		for _, x := range list {
			at := fab.Owner(x.Source)
			for _, out := range x.Out {
				if fab.Owner(out) != at {
					t.Fatalf("%+v leaves where it is not", x)
				}
				at = fab.Owner(fab.Peer(out))
			}
			if at != fab.Owner(x.Destination) {
				t.Fatalf("%+v ends elsewhere", x)
			}
		}
	})
}
