package verify_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/lft/adaptive"
	"github.com/ibweave/ibweave/sminterface/dump"
	"github.com/ibweave/ibweave/sminterface/dump/dumptest"
	"github.com/ibweave/ibweave/state"
	"github.com/ibweave/ibweave/verify"
)

var tiny = flag.Int("tiny", short.Usual(50, 17), "tiny fabrics whose states are all searched")

// network is all that packets of CA ports can do in a tiny fabric whose channels between
// switches, (cable, VL), have room for one packet each.
type network struct {
	channels []channel
	kinds    []kind
	// By channel and kind of the packet in it: where the packet can go, and the ports that it is
	// sure to be offered if it is blocked, of which an adversary chooses one.
	moves, offers [][][]int // indices of channels; gone for the owner
	sources       [][]int   // by kind: the channels that senders put packets into
}

// kind is packets that take the same way.
type kind struct {
	lid fabric.LID
	sl  fabric.SL
}

const gone = -1

// newNetwork returns nil if there are too many channels and kinds for a jam of 64 bits.
func newNetwork(s *slow) *network {
	n := &network{}
	at := func(out fabric.PortID, vl fabric.VL) int {
		if s.f.PeerSwitch(out) == fabric.NoNode {
			return gone
		}
		c := channel{out, vl}
		if i := slices.Index(n.channels, c); i >= 0 {
			return i
		}
		n.channels = append(n.channels, c)
		n.moves, n.offers = append(n.moves, make([][]int, 16)), append(n.offers, make([][]int, 16))
		return len(n.channels) - 1
	}
	var follow func(c, k int)
	enter := func(in fabric.PortID, k int) (moves, offers []int) {
		h := s.look(in, n.kinds[k].lid, n.kinds[k].sl)
		for out, vl := range h.good {
			c := at(out, vl)
			moves = append(moves, c)
			if slices.Contains(h.offers, out) {
				offers = append(offers, c)
			}
			if c != gone {
				follow(c, k)
			}
		}
		return moves, offers
	}
	follow = func(c, k int) {
		if n.moves[c][k] == nil {
			n.moves[c][k] = []int{gone} // while the packet is followed
			moves, offers := enter(s.f.Peer(n.channels[c].port), k)
			n.moves[c][k], n.offers[c][k] = moves, offers
		}
	}
	for _, from := range s.f.CAPorts() {
		for _, to := range s.f.CAPorts() {
			for lid := range s.f.LIDs(to) {
				for _, sl := range s.sls(from, lid) {
					if from == to {
						continue
					}
					k := slices.Index(n.kinds, kind{lid, sl})
					if k < 0 {
						k = len(n.kinds)
						n.kinds = append(n.kinds, kind{lid, sl})
						n.sources = append(n.sources, nil)
					}
					if k >= 15 {
						return nil
					}
					moves, _ := enter(s.f.Attachment(from), k)
					n.sources[k] = append(n.sources[k], moves...)
				}
			}
		}
	}
	if len(n.channels) > 16 {
		return nil
	}
	return n
}

// leaves returns true if a packet that is in a channel goes to its owner next. Nothing stops it,
// so that it need not stay in a state.
func (n *network) leaves(c, k int) bool {
	return !slices.ContainsFunc(n.moves[c][k], func(to int) bool { return to != gone })
}

// jam has 4 bits for each channel: 0, or 1 + the kind of its packet.
type jam uint64

func (s jam) at(c int) int          { return int(s>>(4*c)&15) - 1 }
func (s jam) with(c int, k int) jam { return s&^(15<<(4*c)) | jam(k+1)<<(4*c) }

// deadlocks searches all states that senders and switches can bring about. It says whether
// all packets can be blocked: with bound when each is bound to any port that it may
// choose, with offered when each is offered its static port. ok is false if there are more
// states than limit.
func (n *network) deadlocks(limit int) (bound, offered, ok bool) {
	seen := map[jam]bool{0: true}
	queue := []jam{0}
	reach := func(s jam) {
		if !seen[s] {
			seen[s] = true
			queue = append(queue, s)
		}
	}
	for at := 0; at < len(queue); at++ {
		if len(queue) > limit {
			return false, false, false
		}
		s := queue[at]
		full := func(c int) bool { return c != gone && s.at(c) >= 0 }
		for k, list := range n.sources {
			for _, c := range list {
				if c != gone && !full(c) && !n.leaves(c, k) {
					reach(s.with(c, k))
				}
			}
		}
		allBound, allOffered := s != 0, s != 0
		for c := range n.channels {
			k := s.at(c)
			if k < 0 {
				continue
			}
			for _, to := range n.moves[c][k] {
				switch {
				case to == gone, !full(to) && n.leaves(to, k):
					reach(s.with(c, -1))
				case !full(to):
					reach(s.with(c, -1).with(to, k))
				}
			}
			allBound = allBound && slices.ContainsFunc(n.moves[c][k], full)
			allOffered = allOffered && slices.ContainsFunc(n.offers[c][k], full)
		}
		bound, offered = bound || allBound, offered || allOffered
	}
	return bound, offered, true
}

// tinyFabric is a ring of three or four switches, of one or two cables each, with a chord now
// and then and a host on most switches.
func tinyFabric(t *testing.T, r *rand.Rand) *fabric.Fabric {
	t.Helper()
	var b fabric.Builder
	n := 3 + r.IntN(2)
	ports := make([]fabric.PortNum, 2*n)
	for s := range n {
		short.Must(b.AddNode(fabric.Node{GUID: fabric.GUID(s + 1), Type: fabric.Switch, NumPorts: 8}))(t)
	}
	cable := func(x, y int) {
		ports[x]++
		from := ports[x]
		ports[y]++
		short.Check(t, b.Connect(x, from, y, ports[y], fabric.Link{}))
	}
	double := r.IntN(2)
	for s := range n {
		for range 1 + double {
			cable(s, (s+1)%n)
		}
	}
	for range (1 - double) * r.IntN(2) {
		s := r.IntN(n)
		cable(s, (s+1+r.IntN(n-1))%n)
	}
	for s := range n {
		if r.IntN(6) > 0 {
			h := short.Must(b.AddNode(fabric.Node{GUID: fabric.GUID(100 + s), Type: fabric.CA, NumPorts: 1}))(t)
			cable(h, s)
		}
	}
	f := short.Must(b.Build())(t)
	return short.Must(lft.AssignLIDs(f, lft.LIDOptions{Policy: lft.DenseLIDs}))(t)
}

// The claims of Check.
const (
	noLoop  = "no loop"
	escape  = "escape"
	noClaim = "none"
)

// tinyTables makes tables and lanes for a tiny fabric. For an escape a second cable is good.
func tinyTables(f *fabric.Fabric, r *rand.Rand, want string) (*adaptive.Tables, state.State) {
	states := [][]adaptive.State{{adaptive.Free}, {adaptive.Free}, {adaptive.Free, adaptive.HBF}, {adaptive.HBF}}[r.IntN(4)]
	tables := &adaptive.Tables{Groups: make([][]adaptive.Group, f.NumSwitches()), Select: adaptive.NewSelector(f)}
	for range 1 + r.IntN(2) {
		style := r.IntN(anyPorts)
		if want == escape && r.IntN(2) == 0 {
			style = parallel
		}
		tables.PLFTs = append(tables.PLFTs, randomPLFT(f, tables, r, style, 0, states))
	}
	for _, s := range f.Switches() {
		for in := range int(f.Node(s).NumPorts) + 1 {
			for sl := range 2 {
				tables.Select.Row(s, fabric.PortNum(in))[sl] = uint8(r.IntN(len(tables.PLFTs)))
			}
		}
	}
	opt := state.State{PathSLs: lft.NewPathSLs(f.NumSwitches(), f.MaxLID())}
	if r.IntN(3) == 0 {
		opt.SL2VL = randomLanes(f, r).SL2VL
	}
	for _, s := range f.Switches() {
		row := make([]fabric.SL, int(f.MaxLID())+1)
		for lid := range row {
			row[lid] = fabric.SL(r.IntN(3) / 2)
		}
		opt.PathSLs.SetRow(row, s)
	}
	return tables, opt
}

// TestStates searches all states of tiny fabrics, as many of each claim of Check. No packets
// are stuck where it says that all choices together have no credit loop, whatever
// ports the switches bind them to, and none where it says that there is an escape, if they
// are offered their static ports. Where it says neither, some are.
func TestAdaptiveStates(t *testing.T) {
	kinds := map[string]int{}
	claims := []string{noLoop, escape, noClaim}
	for seed, done := 0, 0; done < short.Of(*tiny, min(*tiny, 6)); seed++ {
		r := rand.New(rand.NewPCG(uint64(seed), 22))
		want := claims[done%len(claims)]
		f := tinyFabric(t, r)
		tables, opt := tinyTables(f, r, want)
		got := short.Must(verify.CheckAdaptive(t.Context(), withTables(f, tables, opt), verify.Options{}))(t)
		claim := noClaim
		switch {
		case got.Adaptive.DeadEnds > 0 || got.Adaptive.Loops > 0:
			continue
		case got.Adaptive.CreditLoops == 0:
			claim = noLoop
		case got.Adaptive.NoEscape == 0:
			claim = escape
		}
		if claim != want {
			continue
		}
		n := newNetwork(&slow{f: f, t: tables, opt: opt})
		if n == nil {
			continue
		}
		bound, offered, ok := n.deadlocks(100_000)
		if !ok {
			continue
		}
		done++
		if claim == noLoop && bound || claim == escape && offered {
			t.Errorf("seed %d: %s, and packets are stuck", seed, claim)
		}
		kinds[claim]++
		if bound {
			kinds[claim+", stuck when bound"]++
		}
		if offered {
			kinds[claim+", stuck"]++
		}
	}
	t.Log(kinds)
	for _, kind := range []string{noClaim + ", stuck", escape + ", stuck when bound"} {
		if kinds[kind] == 0 {
			t.Errorf("none of %q: the fabrics do not cover everything", kind)
		}
	}
}

var mutations = flag.Int("mutations", 0, "mutations that matter in TestMutations; 0 for 100, or one of each kind with -short")

// kinds are what TestMutations changes.
var kinds = []string{"port removed", "port added", "static port moved", "group emptied", "port without a cable added",
	"state changed", "row removed", "group of an entry changed", "PLFT changed"}

// TestMutations writes adaptive tables as ibdiagnet's far and what selects their PLFTs,
// changes one thing in the text, and reads and checks it. Whatever the slow checker says
// that it breaks, or breaks a rule of the tables by their definition, has to be a new
// finding of that rule. Each kind of change has as many cases.
func TestAdaptiveMutations(t *testing.T) {
	if *mutations == 0 {
		*mutations = short.Of(100, len(kinds))
	}
	broken := map[string]int{}
	tried := 0
	for seed, matter := uint64(0), 0; matter < *mutations; seed++ {
		if seed > uint64(100**mutations) {
			t.Fatalf("%d mutations that matter of %d", matter, tried)
		}
		r := rand.New(rand.NewPCG(seed, 21))
		f, tables, opt := mutable(t, r)
		kind := kinds[matter%len(kinds)]
		if kind == "PLFT changed" && (len(tables.PLFTs) == 1 || tables.Select == nil) {
			continue
		}
		before := writeAdaptive(t, f, tables)
		was := judged(t, f, before, opt)
		for range 10 {
			after := mutate(f, before, kind, r)
			if slices.Equal(before, after) {
				continue
			}
			tried++
			now := judged(t, f, after, opt)
			rule := now.worse(was)
			if rule == "" {
				continue
			}
			if !now.says(rule, was) {
				t.Errorf("seed %d: %s: no new finding of %s", seed, kind, rule)
			}
			matter++
			broken[rule]++
			break
		}
	}
	t.Logf("%d mutations that matter, of %d: %v", *mutations, tried, broken)
	for _, rule := range []string{verify.AdaptiveDeadEnd, verify.AdaptiveLoop, verify.AdaptiveCreditLoop, verify.AdaptiveEmptyGroup, verify.AdaptivePortDown, verify.AdaptiveStaticOutside} {
		if broken[rule] == 0 && *mutations >= 1000 {
			t.Errorf("nothing breaks %s", rule)
		}
	}
}

// mutable makes tables that the form can say: of a tree that is full or lacks a cable, with
// all shortest paths; of a dense fabric by up*/down* or with an escape by it; or at random.
func mutable(t *testing.T, r *rand.Rand) (*fabric.Fabric, *adaptive.Tables, state.State) {
	switch r.IntN(3) {
	case 0:
		f := randomFabric(t, r, 2+r.IntN(5), r.IntN(6), 1+r.IntN(6))
		return f, sayable(f, randomTables(f, r)), randomLanes(f, r)
	case 1:
		f := randomFabric(t, r, 4+r.IntN(3), 4+r.IntN(4), 6)
		tables := &adaptive.Tables{Groups: make([][]adaptive.Group, f.NumSwitches())}
		tables.PLFTs = []*adaptive.PLFT{randomPLFT(f, tables, r, []int{upDown, duato, parallel}[r.IntN(3)], 0, []adaptive.State{adaptive.Free, adaptive.Free, adaptive.HBF}[r.IntN(2):])}
		return f, sayable(f, tables), state.State{PathSLs: someSLs(f, r)}
	}
	f := short.Must(gen.FatTree([]gen.FatTreeSpec{{Radix: 4, Levels: 2}, {Radix: 6, Levels: 2, HostsPerLeaf: 1}}[r.IntN(2)]))(t)
	f = short.Must(gen.Options{DropLinks: r.IntN(2), Seed: r.Uint64()}.Apply(f))(t)
	f = short.Must(lft.AssignLIDs(f, lft.LIDOptions{}))(t)
	return f, shortestTables(f, 1+r.IntN(2), r), state.State{PathSLs: someSLs(f, r)}
}

// someSLs gives each path SL 0 or 1.
func someSLs(f *fabric.Fabric, r *rand.Rand) *lft.PathSLs {
	p := lft.NewPathSLs(f.NumSwitches(), f.MaxLID())
	for _, s := range f.Switches() {
		row := make([]fabric.SL, int(f.MaxLID())+1)
		for lid := range row {
			row[lid] = fabric.SL(r.IntN(2))
		}
		p.SetRow(row, s)
	}
	return p
}

// sayable leaves out of tables what the form cannot say.
func sayable(f *fabric.Fabric, tables *adaptive.Tables) *adaptive.Tables {
	for s := range fabric.NodeID(f.NumSwitches()) {
		for _, g := range tables.Groups[s] {
			for i := range g.Subgroups {
				var ports adaptive.PortSet
				g.Subgroups[i].Ports.Each(func(p fabric.PortNum) {
					if p <= f.Node(s).NumPorts {
						ports.Add(p)
					}
				})
				g.Subgroups[i].Ports, g.Subgroups[i].Number = ports, i
			}
		}
		for _, plft := range tables.PLFTs {
			for l, port := range plft.Ports.Row(s) {
				if port > f.Node(s).NumPorts {
					plft.Ports.Row(s)[l] = fabric.NoPath
				}
				if _, group := plft.At(s, fabric.LID(l)); group < 0 {
					plft.Set(s, fabric.LID(l), adaptive.Static, -1)
				}
			}
		}
	}
	return tables
}

// shortestTables has all ports that lead nearer in a group of each entry, some subgroups, some
// entries without a static port; with two PLFTs the odd SLs take the second on half the switches.
func shortestTables(f *fabric.Fabric, plfts int, r *rand.Rand) *adaptive.Tables {
	t := &adaptive.Tables{Groups: make([][]adaptive.Group, f.NumSwitches()), Select: adaptive.NewSelector(f)}
	hops := f.Distances()
	for k := range plfts {
		p := adaptive.NewPLFT(lft.NewTables(f.NumSwitches(), f.MaxLID()))
		t.PLFTs = append(t.PLFTs, p)
		for _, s := range f.Switches() {
			if k > 0 && s%2 == 0 {
				continue
			}
			for in := range int(f.Node(s).NumPorts) + 1 {
				for sl := range t.Select.Row(s, fabric.PortNum(in)) {
					t.Select.Row(s, fabric.PortNum(in))[sl] = uint8(k * (sl % 2))
				}
			}
			for lid := fabric.LID(1); lid <= f.MaxLID(); lid++ {
				at := f.Attachment(f.LIDPort(lid))
				if at == fabric.NoPort {
					continue
				}
				var near adaptive.PortSet
				root := f.Owner(at)
				links, to := f.SwitchLinks(s)
				for i, out := range links {
					if hops.To(root)[to[i]] < hops.To(root)[s] {
						near.Add(f.Num(out))
					}
				}
				if s == root {
					p.Ports.Row(s)[lid] = f.Num(at)
					continue
				}
				state := []adaptive.State{adaptive.Free, adaptive.Free, adaptive.HBF}[r.IntN(3)]
				setEntry(t, p, s, lid, state, near, near, r)
			}
		}
	}
	return sayable(f, t)
}

// writeAdaptive gives the lines of far and, behind them, of what selects the PLFTs.
func writeAdaptive(t *testing.T, f *fabric.Fabric, tables *adaptive.Tables) []string {
	t.Helper()
	var b bytes.Buffer
	short.Check(t, dump.WriteFAR(&b, f, tables, dump.WriteOptions{}))
	if tables.Select != nil {
		b.Write(dumptest.PLFTMap(f, tables.Select))
	}
	return strings.Split(b.String(), "\n")
}

const selects = "PLFTs of switch"

// readAdaptive reads what writeAdaptive wrote.
func readAdaptive(t *testing.T, f *fabric.Fabric, lines []string) *adaptive.Tables {
	t.Helper()
	text := strings.Join(lines, "\n")
	i := strings.Index(text, selects)
	if i < 0 {
		i = len(text)
	}
	tables, problems, err := dump.ReadFAR("far", []byte(text[:i]), f, dump.Options{})
	if err == nil && i < len(text) {
		tables.Select, _, err = dump.ReadPLFTMap("plft", []byte(text[i:]), f, dump.Options{})
	}
	if err != nil || len(problems) > 0 {
		t.Fatalf("%v %v", err, problems)
	}
	return tables
}

// place is a line of a text, in the section of a switch.
type place struct {
	line int
	sw   fabric.NodeID
}

// mutate changes one thing in a text; it can come out as it was.
func mutate(f *fabric.Fabric, lines []string, kind string, r *rand.Rand) []string {
	var groups, entries, rows []place
	part, sw := "", fabric.NoNode
	for i, line := range lines {
		if at := strings.Index(line, "witch 0x"); at >= 0 {
			guid, _ := strconv.ParseUint(line[at+len("witch 0x"):][:16], 16, 64)
			sw, _ = f.SwitchByGUID(fabric.GUID(guid))
			part = line[:at]
		}
		switch {
		case line == "" || line[0] < '0' || line[0] > '9':
		case strings.HasPrefix(part, "PLFTs"):
			rows = append(rows, place{i, sw})
		case strings.HasPrefix(line, "0x"):
			entries = append(entries, place{i, sw})
		default:
			groups = append(groups, place{i, sw})
		}
	}
	changed := slices.Clone(lines)
	pick := func(list []place) (at place, fields []string) {
		at = list[r.IntN(len(list))]
		return at, strings.Fields(lines[at.line])
	}
	switch kind {
	case "PLFT changed":
		at, row := pick(rows)
		row[2+r.IntN(2)] = strconv.Itoa(r.IntN(3)) // of SL 0 or 1
		changed[at.line] = strings.Join(row, " ")
	case "static port moved", "state changed", "row removed", "group of an entry changed":
		at, row := pick(entries)
		for range 20 { // to entries with a choice
			if kind == "state changed" || row[2] != "Static" {
				break
			}
			at, row = pick(entries)
		}
		var own []string // groups of the switch
		for _, g := range groups {
			if g.sw == at.sw {
				own = append(own, strings.Fields(lines[g.line])[0])
			}
		}
		switch kind {
		case "static port moved":
			row[1] = strconv.Itoa(r.IntN(int(f.Node(at.sw).NumPorts) + 1))
		case "state changed":
			row[2] = map[string]string{"Static": "HBF", "Free": []string{"Static", "HBF"}[r.IntN(2)], "HBF": "Free"}[row[2]]
		case "row removed":
			row = nil
		default:
			row[3] = append(own, "0")[r.IntN(len(own)+1)]
		}
		if row != nil && row[2] != "Static" && !slices.Contains(own, row[3]) {
			return lines // an error of the reader
		}
		changed[at.line] = strings.Join(row, " ")
	default:
		if len(groups) == 0 {
			return lines
		}
		at, row := pick(groups)
		ports := []string{}
		if len(row) > 3 {
			ports = strings.Split(strings.TrimSuffix(row[3], ","), ",")
		}
		var up, down []string
		for num := fabric.PortNum(1); num <= f.Node(at.sw).NumPorts; num++ {
			if f.Peer(f.Port(at.sw, num)) != fabric.NoPort {
				up = append(up, strconv.Itoa(int(num)))
			} else {
				down = append(down, strconv.Itoa(int(num)))
			}
		}
		switch {
		case kind == "port added" && len(up) > 0:
			ports = append(ports, up[r.IntN(len(up))])
		case kind == "port without a cable added" && len(down) > 0:
			ports = append(ports, down[r.IntN(len(down))])
		case kind == "port removed" && len(ports) > 0:
			one := r.IntN(len(ports))
			ports = slices.Delete(ports, one, one+1)
		case kind == "group emptied":
			ports = nil
		}
		changed[at.line] = strings.Join(row[:3], " ") + " " + strings.Join(append(ports, ""), ",")
	}
	return changed
}

// judgement is what the slow checker, the definitions of rules, and the checks say of a text.
type judgement struct {
	slow  map[string]int  // what is wrong, by the rule that has to say so
	rules map[string]int  // the same of the tables by themselves
	found map[string]bool // findings, each behind its rule
	doubt map[string]bool // undecided rules
}

func judged(t *testing.T, f *fabric.Fabric, lines []string, opt state.State) *judgement {
	t.Helper()
	tables := readAdaptive(t, f, lines)
	s := newSlow(f, tables, opt)
	j := &judgement{rules: brokenRules(f, tables), found: map[string]bool{}, doubt: map[string]bool{}}
	j.slow = map[string]int{
		verify.AdaptiveDeadEnd: int(s.deadEnds), verify.AdaptiveLoop: int(s.loops),
		verify.ManagementAdaptiveDeadEnd: int(s.mgmtDeadEnds), verify.ManagementAdaptiveLoop: int(s.mgmtLoops),
	}
	for rule, sets := range map[string][2]dependencies{
		verify.AdaptiveCreditLoop: {s.unicast, s.unicastEscape}, verify.ManagementAdaptiveCreditLoop: {s.all, s.allEscape},
	} {
		if sets[0].components() > 0 {
			j.slow[rule] = sets[1].components()
			j.slow[map[string]string{verify.AdaptiveCreditLoop: verify.AdaptiveEscape, verify.ManagementAdaptiveCreditLoop: verify.ManagementAdaptiveEscape}[rule]] = 1
		}
	}
	r := short.Must(verify.CheckAdaptive(context.Background(), withTables(f, tables, opt), verify.Options{Findings: 1 << 20, Witnesses: 1 << 20}))(t)
	for _, x := range append(r.Findings, verify.CheckAdaptiveTables(f, tables, 1<<20)...) {
		j.found[fmt.Sprint(x.Rule, " ", x.LID, x.Switch, x.Count, x.Message)] = true
	}
	for _, u := range r.Undecided {
		j.doubt[u.Rule] = true
	}
	return j
}

// brokenRules counts what breaks rules of tables, as these are defined.
func brokenRules(f *fabric.Fabric, t *adaptive.Tables) map[string]int {
	broken := map[string]int{}
	for s := range fabric.NodeID(f.NumSwitches()) {
		used := map[int]bool{}
		for _, plft := range t.PLFTs {
			for l, static := range plft.Ports.Row(s) {
				state, group := plft.At(s, fabric.LID(l))
				if state == adaptive.Static || group < 0 {
					continue
				}
				used[group] = true
				ports := t.Groups[s][group].Ports()
				if static != fabric.NoPath && ports.Len() > 0 && !ports.Has(static) {
					broken[verify.AdaptiveStaticOutside]++
				}
			}
		}
		down := map[fabric.PortNum]bool{}
		for group := range used {
			ports := t.Groups[s][group].Ports()
			if ports.Len() == 0 {
				broken[verify.AdaptiveEmptyGroup]++
			}
			ports.Each(func(p fabric.PortNum) {
				down[p] = down[p] || p == 0 || f.Peer(f.Port(s, p)) == fabric.NoPort
			})
		}
		for _, is := range down {
			if is {
				broken[verify.AdaptivePortDown]++
			}
		}
	}
	return broken
}

// worse says by which rule j is worse than what was, "" for none.
func (j *judgement) worse(was *judgement) string {
	for _, rules := range [][2]map[string]int{{j.slow, was.slow}, {j.rules, was.rules}} {
		for _, list := range [][]verify.Rule{verify.AdaptiveRules, verify.AdaptiveTableRules} {
			for _, rule := range list {
				// A credit loop of CAs is not told again for management.
				told := creditRules[rule.Name] && strings.HasPrefix(rule.Name, "management") && j.slow[verify.AdaptiveEscape]+was.slow[verify.AdaptiveEscape] > 0
				if rules[0][rule.Name] > rules[1][rule.Name] && !told {
					return rule.Name
				}
			}
		}
	}
	return ""
}

// creditRules are about the same: which of them speaks depends on whether there is an escape.
var creditRules = map[string]bool{verify.AdaptiveCreditLoop: true, verify.AdaptiveEscape: true, verify.ManagementAdaptiveCreditLoop: true, verify.ManagementAdaptiveEscape: true}

// says returns true if there is a finding of a rule that there was not before. A rule can be
// undecided where it is not known which packets take which PLFT.
func (j *judgement) says(rule string, was *judgement) bool {
	for x := range j.found {
		of, _, _ := strings.Cut(x, " ")
		if (of == rule || creditRules[of] && creditRules[rule]) && !was.found[x] {
			return true
		}
	}
	return j.doubt[rule]
}
