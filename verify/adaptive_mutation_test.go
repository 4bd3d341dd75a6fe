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

// says says whether there is a finding of a rule that there was not before. A rule can be
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
