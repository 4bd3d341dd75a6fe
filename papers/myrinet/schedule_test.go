package myrinet

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/mft"
	"github.com/ibweave/ibweave/papers/multistage"
)

// group is all hosts of f whose indices are given, all of them senders.
func group(f *fabric.Fabric, name string, hosts ...int) mft.Group {
	g := mft.Group{Name: name}
	for _, h := range hosts {
		g.Receivers = append(g.Receivers, f.CAPorts()[h])
	}
	slices.Sort(g.Receivers)
	g.Senders = g.Receivers
	return g
}

// byPlace gives hosts the IDs 1, 2, .. in the order of fabric.CAPorts.
func byPlace(f *fabric.Fabric) func(fabric.PortID) int32 {
	return func(p fabric.PortID) int32 { return int32(slices.Index(f.CAPorts(), p)) + 1 }
}

func mustSchedule(t testing.TB, f *fabric.Fabric, tables *lft.Tables, opt Options, groups ...mft.Group) *Schedule {
	t.Helper()
	return short.Must(Build(f, tables, groups, opt))(t)
}

// walk is the way of a message round a circuit: "3>4 c1 (4), .." with what the
// header counts when a host sends.
func walk(s *Schedule, sender int32) string {
	g := &s.Groups[0]
	at, held, from := slices.IndexFunc(s.Hosts, func(h Host) bool { return h.ID == sender }), SendBuffer, Anyone
	var steps []string
	for hops := g.Hops; hops > 0; hops-- {
		sends := g.Of(int32(at), held, from)
		if len(sends) != 1 {
			return fmt.Sprint(sends)
		}
		steps = append(steps, fmt.Sprintf("%d>%d c%d (%d)", s.Hosts[at].ID, s.Hosts[sends[0].To].ID, sends[0].Class, hops))
		from, held, at = int32(at), sends[0].Class, int(sends[0].To)
	}
	return strings.Join(steps, ", ")
}

// TestTwoClasses is golden G-M2, Figures 7 and 8 of the paper.
func TestTwoClasses(t *testing.T) {
	f := torus8(t)
	tables := routed(t, f)
	five := group(f, "five", 0, 1, 2, 3, 4)
	for _, tt := range []struct {
		ret    bool
		hosts  []int
		sender int32
		want   string
	}{
		{false, []int{0, 1, 2, 3, 4}, 3, "3>4 c1 (4), 4>5 c1 (3), 5>1 c2 (2), 1>2 c2 (1)"},
		{true, []int{0, 1, 2, 3, 4}, 3, "3>4 c1 (5), 4>5 c1 (4), 5>1 c2 (3), 1>2 c2 (2), 2>3 c2 (1)"},
		{true, []int{0, 1, 2, 3}, 1, "1>2 c1 (4), 2>3 c1 (3), 3>4 c1 (2), 4>1 c2 (1)"},
		{false, []int{0, 1, 2, 3}, 1, "1>2 c1 (3), 2>3 c1 (2), 3>4 c1 (1)"},
	} {
		s := mustSchedule(t, f, tables, Options{Return: tt.ret, ID: byPlace(f)}, group(f, "", tt.hosts...))
		short.Equal(t, walk(s, tt.sender), tt.want, "from", tt.sender, "of", len(tt.hosts), "return", tt.ret)
		if r := s.Check(); !r.Clean() {
			t.Error(s.Explain(r))
		}
	}
	// With one class the same circuit waits for itself.
	s := mustSchedule(t, f, tables, Options{Classes: 1, ID: byPlace(f)}, five)
	r := s.Check()
	if got, want := s.Witness(r.Deadlock), "1/1 > 2/1 > 3/1 > 4/1 > 5/1 > 1/1"; got != want || len(r.Faults) > 0 {
		t.Errorf("one class: %s, want %s; %v", got, want, r.Faults)
	}
	if lines := s.Explain(r); len(lines) != 6 || lines[1] != `    a message of group "five" holds class 1 at host 1 and waits for class 1 at host 2` {
		t.Errorf("explained as %q", lines)
	}
	// With one sender it does not close.
	five.Senders = five.Senders[:1]
	if r := mustSchedule(t, f, tables, Options{Classes: 1, ID: byPlace(f)}, five).Check(); !r.Clean() || r.Messages != 1 || r.Sends != 4 || r.Steps != 4 {
		t.Errorf("one sender, one class: %+v", r)
	}
}

// TestFigure6 has two hosts that send to each other: with one class each can wait
// for the other, with two none does.
func TestFigure6(t *testing.T) {
	f := torus8(t)
	tables := routed(t, f)
	for _, m := range []Method{Circuit, TreeFlood} {
		s := mustSchedule(t, f, tables, Options{Method: m, Classes: 1, ID: byPlace(f)}, group(f, "x", 0, 1, 2, 3), group(f, "y", 0, 1, 3))
		r := s.Check()
		if len(r.Deadlock) < 2 {
			t.Errorf("%s, one class: %v", m, r.Deadlock)
		}
		s = mustSchedule(t, f, tables, Options{Method: m, ID: byPlace(f)}, group(f, "x", 0, 1, 2), group(f, "y", 0, 1, 3))
		if r := s.Check(); !r.Clean() {
			t.Errorf("%s, two classes: %q", m, s.Explain(r))
		}
	}
	// Ordered circuits and trees from the root ascend only: one class is enough.
	for _, opt := range []Options{{Method: Circuit, Ordered: true, Classes: 1}, {Method: Tree, Classes: 1}} {
		s := mustSchedule(t, f, tables, opt, group(f, "x", 0, 1, 2), group(f, "y", 0, 1, 3))
		if r := s.Check(); !r.Clean() {
			t.Errorf("%s, ordered, one class: %q", opt.Method, s.Explain(r))
		}
	}
}

// TestSharedClasses is E-M10: circuits that ascend in class 1 and floods that climb
// in it to lower IDs are safe apart and not together.
func TestSharedClasses(t *testing.T) {
	f := torus8(t)
	tables := routed(t, f)
	all := group(f, "all", 0, 1, 2, 3)
	circuit := mustSchedule(t, f, tables, Options{ID: byPlace(f)}, all)
	flood := mustSchedule(t, f, tables, Options{Method: TreeFlood, ID: byPlace(f)}, all)
	both := &Schedule{Classes: 2, Hosts: circuit.Hosts, Groups: []Group{circuit.Groups[0], flood.Groups[0]}}
	if r := both.Check(); len(r.Deadlock) == 0 || len(r.Faults) != 0 {
		t.Errorf("together: %v", r.Deadlock)
	} else if groups := r.Deadlock[0].Group + r.Deadlock[1].Group; groups != 1 {
		t.Errorf("the cycle %s has no wait of one of the groups", both.Witness(r.Deadlock))
	}
}

// TestRandomSchedules has random groups in all methods: each message comes to every
// member once, no buffers wait in a cycle, a message takes as many sends as the
// paper says, and children have higher IDs than parents.
func TestRandomSchedules(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 0))
	f := torus8(t)
	tables := routed(t, f)
	for trial := range short.Of(40, 5) {
		var groups []mft.Group
		for g := range 10 {
			groups = append(groups, group(f, fmt.Sprint(g), rng.Perm(64)[:2+rng.IntN(12)]...))
		}
		ids := rng.Perm(64)
		id := func(p fabric.PortID) int32 { return int32(ids[slices.Index(f.CAPorts(), p)]) + 1 }
		for _, opt := range []Options{
			{Method: Circuit}, {Method: Circuit, Return: true}, {Method: Circuit, Ordered: true}, {Method: Circuit, Ordered: true, Classes: 1},
			{Method: Tree}, {Method: Tree, Classes: 1}, {Method: Tree, MaxFanOut: 2}, {Method: TreeFlood}, {Method: TreeFlood, MaxFanOut: 1},
			{Method: Repeated}, {Method: Repeated, Classes: 1}, {Method: Doubling}, {Method: Doubling, Classes: 1},
		} {
			opt.ID = id
			s := mustSchedule(t, f, tables, opt, groups...)
			r := s.Check()
			if !r.Clean() {
				t.Fatalf("trial %d %+v: %q", trial, opt, s.Explain(r))
			}
			want, messages := 0, 0
			for i := range s.Groups {
				g := &s.Groups[i]
				n := len(g.Members)
				messages += n
				want += n * (n - 1)
				if opt.Return {
					want += n
				}
				if opt.Ordered || opt.Method == Tree || opt.Method == Doubling {
					want += n - 1 // all but the root send to it
				}
				for _, x := range g.Sends {
					if x.Held != SendBuffer && (x.Held > x.Class || x.Held == x.Class && x.To < x.At) && opt.Method != TreeFlood {
						t.Fatalf("%s: %v goes down", opt.Method, x)
					}
				}
			}
			if r.Sends != want || r.Messages != messages {
				t.Errorf("trial %d %+v: %d sends of %d messages, want %d of %d", trial, opt, r.Sends, r.Messages, want, messages)
			}
			back, err := Read("x", s.Append(nil))
			if err != nil || !reflect.DeepEqual(back, s) || !bytes.Equal(back.Append(nil), s.Append(nil)) {
				t.Fatalf("read back: %v", err)
			}
		}
	}
}

// TestTwoPhase has random groups: each originator sends to as many hosts in a row as it has
// destinations, and these to the destinations by multistage.TwoPhase, in two steps.
func TestTwoPhase(t *testing.T) {
	f := torus8(t)
	tables := routed(t, f)
	rng := rand.New(rand.NewPCG(7, 0))
	starts := map[int32]bool{}
	for trial := range short.Of(60, 10) {
		n := 2 + rng.IntN(30)
		numbers := rng.Perm(64)[:n]
		if trial%10 == 0 {
			numbers = []int{20, 21, 22, 23, 24} // in a row, from every sender
		}
		s := mustSchedule(t, f, tables, Options{Method: TwoPhase}, group(f, "g", numbers...))
		r := s.Check()
		if !r.Clean() || r.Steps != 2-btoi(trial%10 == 0) && n > 2 {
			t.Fatalf("%v: %d steps, %q", numbers, r.Steps, s.Explain(r))
		}
		if back, err := Read("x", s.Append(nil)); err != nil || !reflect.DeepEqual(back, s) {
			t.Fatalf("%v: read back: %v", numbers, err)
		}
		g := &s.Groups[0]
		for _, o := range g.Senders {
			to := []int{}
			for _, m := range g.Members {
				if m != o {
					to = append(to, int(m))
				}
			}
			region := g.Of(o, SendBuffer, Anyone)[0]
			if int(region.More) == len(to) {
				continue // a region with the originator in it
			}
			starts[region.To] = true
			want := short.Must(multistage.TwoPhase(6, int(o), to, int(region.To)))(t)
			got := map[int]int{} // by the host of the region: its destination
			for _, x := range g.Sends {
				if x.Held == 1 && x.From == o || x.Held == SendBuffer && x.At == o && x.More == 0 && x.Class == 2 {
					got[int(x.At)] = int(x.To)
				}
			}
			for _, x := range want.Sends {
				if d, ok := got[x.From]; ok != (x.From != x.To) || ok && d != x.To {
					t.Fatalf("%v from %d: host %d sends to %d, want %d", numbers, o, x.From, d, x.To)
				}
				delete(got, x.From)
			}
			if len(got) > 0 || want.Sends != nil && int(region.More) != len(to)-1 {
				t.Fatalf("%v from %d: region of %d, and further sends %v", numbers, o, region.More+1, got)
			}
		}
	}
	if len(starts) < 20 {
		t.Errorf("regions begin at %d hosts: want them spread", len(starts))
	}
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// TestTwoPhaseFaults has schedules that Check finds wrong: a host of the region that sends to
// another member, and one that does not send.
func TestTwoPhaseFaults(t *testing.T) {
	const text = "ibweave-schedule 1\nclasses 2\nhost 1 lid 1 port 1\nhost 2 lid 2 port 2\nhost 3 lid 3 port 3\nhost 4 lid 4 port 4\n" +
		"group two-phase hops 0 \"g\"\nmembers 1 2 4\nsenders 1\n1 send * > 2-3 1\n2 1 1 > 4 2\n3 1 1 > 2 2\n"
	for change, faults := range map[[2]string]int{
		{"", ""}:                               0,
		{"3 1 1 > 2 2", "3 1 1 > 4 2"}:         1, // 2 gets none, 4 gets two
		{"2 1 1 > 4 2\n", ""}:                  1, // 4 gets none, 2 gets two
		{"1 send * > 2-3 1", "1 send * > 2 1"}: 1,
	} {
		s := short.Must(Read("x", []byte(strings.Replace(text, change[0], change[1], 1))))(t)
		if r := s.Check(); len(r.Faults) != faults {
			t.Errorf("%q: %+v", change, r)
		}
	}
	for line, want := range map[string]string{
		"1 send * > 3-2 1": "want the lower ID first", "2 1 1 > 3-4 2": "want one host", "1 send * > 2-9 1": "no host has the ID 9",
	} {
		if _, err := Read("x", []byte(strings.Replace(text, "1 send * > 2-3 1", line, 1))); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", line, err, want)
		}
	}
}

// TestSoftware has the schedules that others are compared with: repeated unicast takes a step
// for each member, recursive doubling ceil(log2(d + 1)) for d destinations.
func TestSoftware(t *testing.T) {
	f := torus8(t)
	tables := routed(t, f)
	rng := rand.New(rand.NewPCG(6, 0))
	for n := 2; n < 20; n++ {
		g := group(f, "g", rng.Perm(64)[:n]...)
		g.Senders = g.Receivers[n/3 : n/3+1]
		for m, steps := range map[Method]int{Repeated: n - 1, Doubling: bits.Len(uint(n - 1))} {
			r := mustSchedule(t, f, tables, Options{Method: m}, g).Check()
			if !r.Clean() || r.Sends != n-1 || r.Steps != steps {
				t.Errorf("%s to %d: %+v, want %d steps", m, n-1, r, steps)
			}
		}
	}
}

// TestTreeCosts is the second part of golden G-M6: links of a send on the mean, for
// random groups with IDs by place. The bands are three standard errors.
func TestTreeCosts(t *testing.T) {
	for _, tt := range []struct {
		name          string
		f             *fabric.Fabric
		members       int
		circuit, tree float64
	}{
		{"torus", torus8(t), 10, 3.227, 2.293},
		{"shufflenet", shufflenet24(t), 6, 2.756, 1.877},
	} {
		rng := rand.New(rand.NewPCG(3, 0))
		tables := routed(t, tt.f)
		var groups []mft.Group
		for g := range short.Of(2000, 500) {
			groups = append(groups, group(tt.f, fmt.Sprint(g), rng.Perm(len(tt.f.CAPorts()))[:tt.members]...))
		}
		for _, m := range []struct {
			opt  Options
			want float64
		}{{Options{Method: Circuit, Return: true}, tt.circuit}, {Options{Method: TreeFlood}, tt.tree}} {
			m.opt.ID = byPlace(tt.f)
			c := short.Must(mustSchedule(t, tt.f, tables, m.opt, groups...).Cost(tt.f, tables))(t)
			t.Logf("%s %s: %.3f links a send", tt.name, m.opt.Method, c.MeanLinks)
			if math.Abs(c.MeanLinks-m.want) > 0.04 {
				t.Errorf("%s %s: %.3f links a send, want %.3f", tt.name, m.opt.Method, c.MeanLinks, m.want)
			}
		}
	}
}

// TestLeastTree compares the trees with all trees under the rule that children have
// higher IDs (M19).
func TestLeastTree(t *testing.T) {
	f := torus8(t)
	tables := routed(t, f)
	rng := rand.New(rand.NewPCG(4, 0))
	for range 20 {
		g := group(f, "g", rng.Perm(64)[:6]...)
		s := mustSchedule(t, f, tables, Options{Method: Tree, ID: byPlace(f)}, g)
		got := 0
		for _, x := range s.Groups[0].Sends {
			if x.Held == 1 {
				got += mustLinks(t, f, tables, s, x.At, x.To)
			}
		}
		least := math.MaxInt
		var try func(child int32, sum int)
		try = func(child int32, sum int) {
			if child == 6 {
				least = min(least, sum)
				return
			}
			for parent := range child {
				try(child+1, sum+mustLinks(t, f, tables, s, parent, child))
			}
		}
		try(1, 0)
		short.Equal(t, got, least, "a tree", "links, the least")
	}
}

func mustLinks(t *testing.T, f *fabric.Fabric, tables *lft.Tables, s *Schedule, a, b int32) int {
	t.Helper()
	return short.Must(Links(f, tables, f.LIDPort(s.Hosts[a].LID), s.Hosts[b].LID))(t)
}

// TestFaults takes sends away and doubles them: Check says who misses messages.
func TestFaults(t *testing.T) {
	f := torus8(t)
	tables := routed(t, f)
	s := mustSchedule(t, f, tables, Options{Method: Tree, ID: byPlace(f)}, group(f, "g", 0, 1, 2, 3))
	g := &s.Groups[0]
	i := slices.IndexFunc(g.Sends, func(x Send) bool { return x.Held == 1 && x.At == 0 && x.To == 1 })
	saved := slices.Clone(g.Sends)
	g.Sends = slices.Delete(g.Sends, i, i+1)
	r := s.Check()
	if len(r.Faults) != 1 || r.Faults[0].Sender != 1 || r.Faults[0].Host != 2 || r.Faults[0].Copies != 0 || r.Clean() {
		t.Errorf("a send that lacks: %+v", r.Faults)
	}
	if lines := s.Explain(r); len(lines) != 1 || lines[0] != `group "g": a message of host 2 does not come to host 3 (5 more like this)` {
		t.Errorf("explained as %q", lines)
	}
	g.Sends = slices.Insert(saved, len(saved), Send{At: 3, Held: 1, From: Anyone, To: 2, Class: 1})
	if r := s.Check(); len(r.Faults) != 1 || r.Faults[0].Host != 2 || r.Faults[0].Copies != 2 {
		t.Errorf("a send too many: %+v", r.Faults)
	}
}

func TestBuildErrors(t *testing.T) {
	f := torus8(t)
	tables := routed(t, f)
	g := group(f, "g", 0, 1)
	same := func(fabric.PortID) int32 { return 1 }
	onSwitch := mft.Group{Name: "s", Receivers: []fabric.PortID{f.Port(0, 0)}}
	for name, try := range map[string]func() error{
		"no classes":      func() error { _, err := Build(f, tables, nil, Options{Classes: -1}); return err },
		"three classes":   func() error { _, err := Build(f, tables, nil, Options{Classes: 3}); return err },
		"ordered flood":   func() error { _, err := Build(f, tables, nil, Options{Method: TreeFlood, Ordered: true}); return err },
		"ordered unicast": func() error { _, err := Build(f, tables, nil, Options{Method: Repeated, Ordered: true}); return err },
		"two-phase in order": func() error {
			_, err := Build(f, tables, nil, Options{Method: TwoPhase, Ordered: true})
			return err
		},
		"doubling's fan":  func() error { _, err := Build(f, tables, nil, Options{Method: Doubling, MaxFanOut: 2}); return err },
		"return of trees": func() error { _, err := Build(f, tables, nil, Options{Method: Tree, Return: true}); return err },
		"ordered return":  func() error { _, err := Build(f, tables, nil, Options{Ordered: true, Return: true}); return err },
		"fan-out":         func() error { _, err := Build(f, tables, nil, Options{MaxFanOut: 2}); return err },
		"IDs twice":       func() error { _, err := Build(f, tables, []mft.Group{g}, Options{ID: same}); return err },
		"a switch":        func() error { _, err := Build(f, tables, []mft.Group{onSwitch}, Options{}); return err },
		"no paths": func() error {
			_, err := Build(f, lft.NewTables(f.NumSwitches(), f.MaxLID()), []mft.Group{g}, Options{Method: Tree})
			return err
		},
	} {
		if try() == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if s := mustSchedule(t, f, tables, Options{}, group(f, "one", 3), group(f, "none")); !s.Check().Clean() || len(s.Groups[0].Sends) != 0 {
		t.Error("groups of one and of none")
	}
}

const sample = `ibweave-schedule 1
classes 2
host 1 lid 65 port 0x0000000000100001
host 2 lid 66 port 0x0000000000100003
host 3 lid 67 port 0x0000000000100005
group circuit hops 2 "a \"b\" #c"
members 1 2 3
senders 1 2 3
1 send * > 2 1
1 2 * > 2 2
2 send * > 3 1
2 1 * > 3 1
3 send * > 1 2
3 1 * > 1 2
`

// TestText has the file in full, and what readers refuse, by line.
func TestText(t *testing.T) {
	f := torus8(t)
	s := mustSchedule(t, f, routed(t, f), Options{ID: byPlace(f)}, group(f, `a "b" #c`, 0, 1, 2))
	short.Equal(t, string(s.Append(nil)), sample)
	read, err := Read("x", []byte("# one\n\n"+strings.ReplaceAll(sample, "\n", "  # more\r\n")))
	if err != nil || !reflect.DeepEqual(read, s) {
		t.Errorf("with comments: %v", err)
	}
	for _, tt := range []struct {
		old, new string
		line     int
		want     string
	}{
		{sample, "", 0, "empty"},
		{"schedule 1", "schedule 2", 1, "ibweave-schedule 1"},
		{"classes 2", "classes 9", 2, "1 to 8"},
		{"classes 2", "host 1", 2, "classes"},
		{"host 2 lid", "host 1 lid", 4, "each once"},
		{"host 1 lid", "host -1 lid", 3, "from 0"},
		{"lid 66", "lid 49152", 4, "49151"},
		{"0x0000000000100003", "port", 4, "GUID"},
		{"0x0000000000100003", "0x0000000000100003 out 0x", 4, "GUID"},
		{"0x0000000000100003", "0x0000000000100003 in 0x1", 4, "want host ID"},
		{"port 0x0000000000100003", "", 4, "want host ID"},
		{"circuit hops", "ring hops", 6, "circuit"},
		{"hops 2", "hops -1", 6, "hops"},
		{`#c"`, "#c", 6, "quote"},
		{"members 1 2 3", "members 1 3 2", 7, "by ID"},
		{"members 1 2 3", "members 1 2 4", 7, "no host"},
		{"senders 1 2 3", "senders 1 2 2", 8, "once"},
		{"members 1 2 3\nsenders", "members 1 2\nsenders", 8, "no member"},
		{"members 1 2 3\n", "", 7, "before the members"},
		{"senders 1 2 3\n", "", 8, "before the members and senders"},
		{"senders 1 2 3", "members 1 2 3", 8, "second"},
		{"1 send * > 2 1", "1 send * > 2 3", 9, "class"},
		{"1 send * > 2 1", "1 send 2 > 2 1", 9, "no sender"},
		{"1 send * > 2 1", "1 send * > 1 1", 9, "itself"},
		{"1 send * > 2 1", "1 send * > 2 send", 9, "class"},
		{"1 send * > 2 1", "1 send > 2 1", 9, "want host"},
		{"2 send * > 3 1\n2 1 * > 3 1", "2 1 * > 3 1\n2 send * > 3 1", 12, "order"},
		{"1 2 * > 2 2", "1 send * > 2 2", 10, "twice"},
		{"group", "\xff", 6, "UTF-8"},
	} {
		text := strings.Replace(sample, tt.old, tt.new, 1)
		s, err := Read("file", []byte(text))
		var e *fabric.ParseError
		if s != nil || !errors.As(err, &e) || e.File != "file" || e.Line != tt.line || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%q for %q: %v, want line %d and %q", tt.new, tt.old, err, tt.line, tt.want)
		}
	}
	if _, err := Read("file", []byte(strings.Split(sample, "members")[0])); err == nil {
		t.Error("a group without members")
	}
}

// FuzzRead: what is read is written and read again the same, can be checked, and an
// error has no result.
func FuzzRead(f *testing.F) {
	f.Add([]byte(sample))
	f.Add([]byte("ibweave-schedule 1\nclasses 2\nhost 1 lid 1 port 1\nhost 2 lid 2 port 2\nhost 3 lid 3 port 3\ngroup two-phase hops 0 \"\"\nmembers 1 2\nsenders 2\n2 send * > 1-3 1\n3 1 2 > 1 2\n"))
	f.Add([]byte("ibweave-schedule 1\nclasses 1\nhost 1 lid 1 port 1\nhost 2 lid 2 port 2\ngroup tree hops 0 \"\"\nmembers 1 2\nsenders 2\n1 1 2 > 2 1\n2 send * > 1 1\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := Read("x", data)
		if err != nil {
			var e *fabric.ParseError
			if s != nil || !errors.As(err, &e) {
				t.Fatalf("%v, and %v", err, s)
			}
			return
		}
		text := s.Append(nil)
		again, err := Read("x", text)
		if err != nil || !reflect.DeepEqual(again, s) {
			t.Fatalf("%q: %v", text, err)
		}
		s.Explain(s.Check())
	})
}
