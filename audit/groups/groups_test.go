package groups_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/ibweave/ibweave/audit/groups"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/state"
	"github.com/ibweave/ibweave/verify"
)

// folder is files by their names.
type folder map[string]string

func (d folder) open(name string) ([]byte, error) {
	text, ok := d[filepath.Clean(name)]
	if !ok {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return []byte(text), nil
}

// named is a fat tree of 18 hosts, whose adapters have names.
func named(t *testing.T, names ...string) *fabric.Fabric {
	t.Helper()
	f := short.Must(gen.FatTree(gen.FatTreeSpec{Radix: 6, Levels: 2}))(t)
	return rename(f, names)
}

// rename gives adapters names, in the order of GUIDs.
func rename(f *fabric.Fabric, names []string) *fabric.Fabric {
	given := make(map[fabric.GUID]string)
	for i, name := range names {
		given[f.Node(fabric.NodeID(f.NumSwitches()+i)).GUID] = name
	}
	return f.WithNames(given)
}

// TestForms reads each way to write a group.
func TestForms(t *testing.T) {
	f := named(t, "r1n1 mlx5_0", "r1n1 mlx5_1", "r1n2 HCA-1", "r2n1", "R2n2 mlx5_0", "oss1 mlx5_0", "login1 mlx5_0")
	files := folder{
		"etc/racks.yaml": `
rack:
  r1: r1n[1-2]
  r2: [ "r2n[1-3]", R2N2 ]
each: re:^(?i:r)(\d)n
use: {storage: "re:^oss", both: "@storage,@rack:r[1-2],login1", all: ["@use:*"]}
slurm: slurm:slurm.conf
show: slurm:scontrol
leaf: slurm:topology.conf
`,
		"etc/slurm.conf": `ClusterName=x
NodeName=r1n[1-2] CPUs=4 Feature=fast,big
nodename=node[1-2] NodeHostName=r2n[1-2] \
  RealMemory = 7
Include more.conf
PartitionName=DEFAULT Nodes=r1n1
PartitionName=small MaxTime=1 # Nodes=login1
PartitionName=all Nodes=ALL State="UP"
PartitionName=sets Nodes=fast,plain
PartitionName=hosts Nodes=node[1-2],login1`,
		"etc/more.conf":     "NodeSet=fast Feature=fast\nNodeSet=plain Nodes=node1\n",
		"etc/scontrol":      "PartitionName=debug AllowGroups=ALL Nodes=r1n[1-2] MaxNodes=1\nPartitionName=empty Nodes=(null)\n",
		"etc/topology.conf": "SwitchName=leaf1 Nodes=r1n[1-2]\nSwitchName=top Switches=leaf[1-2]\n",
	}
	x := short.Must(groups.Read("etc/racks.yaml", files.open))(t)
	s := short.Must(x.In(f))(t)
	var got []string
	for i := range s.Groups {
		g := &s.Groups[i]
		var nodes []string
		for _, n := range g.Nodes {
			nodes = append(nodes, strings.Fields(f.Name(n).Text)[0])
		}
		if g.Name != groups.NoGroup {
			got = append(got, fmt.Sprintf("%s: %s, %d absent", g, strings.Join(nodes, " "), g.Absent))
		}
	}
	want := []string{
		"rack r1: r1n1 r1n1 r1n2, 0 absent",
		"rack r2: r2n1 R2n2, 1 absent",
		"each 1: r1n1 r1n1 r1n2, 0 absent",
		"each 2: r2n1 R2n2, 0 absent",
		"use storage: oss1, 0 absent",
		"use both: r1n1 r1n1 r1n2 r2n1 R2n2 oss1 login1, 1 absent",
		"use all: r1n1 r1n1 r1n2 r2n1 R2n2 oss1 login1, 1 absent",
		"slurm small: r1n1 r1n1, 0 absent",
		"slurm all: r1n1 r1n1 r1n2 r2n1 R2n2, 0 absent",
		"slurm sets: r1n1 r1n1 r1n2 r2n1, 0 absent",
		"slurm hosts: r2n1 R2n2 login1, 0 absent",
		"show debug: r1n1 r1n1 r1n2, 0 absent",
		"show empty: , 0 absent",
		"leaf leaf1: r1n1 r1n1 r1n2, 0 absent",
	}
	short.Diff(t, got, want, "groups")
	for _, want := range []string{
		"etc/racks.yaml:4: rack r2: 1 of 3 hosts are not in the fabric: r2n3",
		"etc/scontrol:2: show empty: no host of the fabric is in it",
		"etc/racks.yaml: 2 hosts are in no rack: login1,oss1",
		"etc/racks.yaml:6: use both: 1 of 7 hosts are not in the fabric: r2n3",
	} {
		if !slices.Contains(s.Notes, want) {
			t.Errorf("no note %q in %q", want, s.Notes)
		}
	}
}

// TestRefused reads what is no file of groups.
func TestRefused(t *testing.T) {
	for text, want := range map[string]string{
		"":                                  "x: the file is empty",
		"rack":                              `x:1: "rack"; want a mapping of groupings`,
		"host-regexp: a":                    "x:1: no grouping",
		"rack:":                             "nothing; want groups with their hosts",
		"rack: n[1-2]":                      `"n[1-2]"; want groups with their hosts`,
		"rack: {r1: }":                      "nothing; want names of hosts",
		"rack: {r1: 'n[1-'}":                "want brackets like [1-4,7]",
		"rack:\n  r1: n1\n  r1: n2":         "x:3:2: r1: is in line 2 already",
		"rack: {(none): n1}":                "as a name",
		"a b: {r1: n1}":                     "want one without blanks",
		"rack: {r1: '@row1'}":               "x:1: no group is written that is called @rack:row1",
		"a: {b: '@c:d'}\nc: {d: 'n1,@a:b'}": "x:1: a b has itself among its groups",
		"a: {b: 'n[1-4]!n2'}":               "x:1:7: \"n[1-4]!n2\" has an operator",
		"a: {b: '@b'}":                      "a b has itself",
		"rack: re:(":                        "missing closing )",
		"rack: 'slurm:'":                    "want the name of a file",
		"rack: file:x":                      `"file:x"; want groups with their hosts`,
		"rack: slurm:empty":                 "empty has no partition",
		"rack: slurm:loop":                  "more than 100 files are included",
		"rack: slurm:hosts":                 "NodeName has 2 names and NodeHostname 3",
		"rack: slurm:bracket":               "bracket:1: ",
		"rack: {r1: 'n[1-1000000]', r2: 'n[1-50000]'}": "more than 1048576 names",
		"rack: slurm:none":           "file does not exist",
		"rack: {r1: 'n1,file:none'}": `"file:none" is the name of no host`,
	} {
		files := folder{"x": text, "empty": "# nothing\n", "loop": "Include loop\nInclude loop\n",
			"hosts": "NodeName=a[1-2] NodeHostname=b[1-3]\nPartitionName=x Nodes=ALL", "bracket": "PartitionName=x Nodes=a]\n"}
		x, err := groups.Read("x", files.open)
		if x != nil || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v; want %q", text, err, want)
		}
	}
	x := short.Must(groups.Read("x", folder{"x": "rack: {r1: n1}"}.open))(t)
	if _, err := x.In(named(t, "m1")); !errors.Is(err, groups.ErrNoHosts) {
		t.Errorf("no host of the fabric is in a group: %v", err)
	}
}

// TestFind finds groups by name.
func TestFind(t *testing.T) {
	files := folder{"x": "rack: {r1: n1, r2: n2, gone: n9}\nrow: {r1: 'n[1-2]'}\n"}
	x := short.Must(groups.Read("x", files.open))(t)
	s := short.Must(x.In(named(t, "n1", "n2")))(t)
	for name, want := range map[string]string{
		"r2": "rack r2", "row:r1": "row r1", "r1": "2 groups are called", "none": "want one of rack:r1", "gone": "x:1: no host of rack gone is in the fabric",
		groups.NoGroup: "no group is called",
	} {
		g, err := s.Find(name)
		if err == nil && g.String() != want || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, %v; want %s", name, g, err, want)
		}
	}
}

// draw makes a fabric of hosts with one or two adapters, tables that lose some pairs, and
// groups that overlap.
func draw(t *testing.T, rnd *rand.Rand) (f *fabric.Fabric, tables *lft.Tables, file string, some map[string]*regexp.Regexp) {
	t.Helper()
	f, err := gen.FatTree(gen.FatTreeSpec{Radix: 4 + 2*rnd.IntN(2), Levels: 2})
	if rnd.IntN(2) == 0 {
		f, err = gen.Irregular(gen.IrregularSpec{Switches: 8, Degree: 3, Hosts: 20, Seed: rnd.Uint64()})
	}
	short.Check(t, err)
	if rnd.IntN(2) == 0 {
		f = f.Without(f.CAPorts()[:rnd.IntN(4)]...)
	}
	var names []string
	adapters := 1 + rnd.IntN(2)
	for i := range f.NumNodes() - f.NumSwitches() {
		names = append(names, fmt.Sprintf("r%dn%d mlx5_%d", i/adapters/4, i/adapters, i%adapters))
	}
	f = rename(f, names)
	f = short.Must(lft.AssignLIDs(f, lft.LIDOptions{Policy: lft.DenseLIDs, LMC: rnd.IntN(2)}))(t)
	r := short.Must(lft.Minhop{}.Route(context.Background(), f, lft.Options{}))(t)
	tables = r.Tables
	for range rnd.IntN(6) {
		row := tables.Row(fabric.NodeID(rnd.IntN(f.NumSwitches())))
		row[1+rnd.IntN(int(f.MaxLID()))] = fabric.PortNum(rnd.IntN(8))
	}
	if ports := f.CAPorts(); rnd.IntN(3) == 0 { // virtual ports whose LIDs have the entries of another port, or none
		top := f.MaxLID()
		virtual := map[fabric.LID]fabric.PortID{top + 1: ports[rnd.IntN(len(ports))], top + 2: ports[rnd.IntN(len(ports))]}
		f = short.Must(f.WithVirtualLIDs(virtual))(t)
		tables = r.On(f).Tables
		for s := range fabric.NodeID(f.NumSwitches()) {
			row := tables.Row(s)
			row[top+1] = row[f.LID(virtual[top+1])]
		}
	}
	a, b := fmt.Sprintf("n[0-%d]$", rnd.IntN(8)), fmt.Sprintf("n1?[%d-9]$", rnd.IntN(9))
	some = map[string]*regexp.Regexp{"a": regexp.MustCompile(a), "b": regexp.MustCompile(b)}
	return f, tables, fmt.Sprintf("rack: re:^(r\\d+)n\nsome: {a: 're:%s', b: 're:%s'}\n", a, b), some
}

// TestRecount holds what is measured and lost by group to a plain count of every pair's path.
func TestRecount(t *testing.T) {
	lost, gone, uplinks := 0, 0, 0
	for seed := range uint64(short.Of(40, 12)) {
		rnd := rand.New(rand.NewPCG(seed, 21))
		f, tables, file, some := draw(t, rnd)
		x := short.Must(groups.Read("x", folder{"x": file}.open))(t)
		s := short.Must(x.In(f))(t)
		var cut []fabric.PortID
		for range rnd.IntN(5) {
			cut = append(cut, f.CAPorts()[rnd.IntN(len(f.CAPorts()))])
			ports, _ := f.SwitchLinks(fabric.NodeID(rnd.IntN(f.NumSwitches())))
			cut = append(cut, ports[:rnd.IntN(len(ports)+1)]...)
		}
		g, virtual := f.Without(cut...), f.VirtualLIDs()
		maps.DeleteFunc(virtual, func(_ fabric.LID, p fabric.PortID) bool { return g.Peer(p) == fabric.NoPort })
		g = short.Must(g.WithVirtualLIDs(virtual))(t)
		states := short.Must(s.Measure(context.Background(), g, tables))(t)
		before := short.Must(s.Measure(context.Background(), f, nil))(t)
		losses := s.Losses(g)
		for i := range states {
			got := &states[i]
			in := membersOf(f, some, got.Grouping, got.Group)
			want := recount(f, g, tables, in)
			want.Grouping, want.Group, want.Hosts, want.Absent = got.Grouping, got.Group, got.Hosts, 0
			short.Diff(t, *got, want, "seed", seed, got.Grouping, got.Group, "(-plain count +got)")
			k := slices.IndexFunc(losses, func(l groups.Loss) bool { return l.Grouping == got.Grouping && l.Group == got.Group })
			var loss groups.Loss
			if k >= 0 {
				loss = losses[k]
			}
			was := cutOff(f, in)
			now := slices.DeleteFunc(cutOff(g, in), func(host string) bool { return slices.Contains(was, host) })
			if loss.Uplinks != before[i].Uplinks-got.Uplinks || loss.CutOff != len(now) {
				t.Errorf("seed %d, %s %s: loses %+v, before %+v", seed, got.Grouping, got.Group, loss, before[i])
			}
			lost, gone, uplinks = lost+int(got.Lost), gone+loss.CutOff, uplinks+loss.Uplinks
		}
		r := short.Must(verify.Check(context.Background(), &state.State{Fabric: f, Tables: tables}, verify.Options{}))(t)
		checkFindings(t, seed, f, some, s.AddFindings(before, r.Findings), r.Findings)
	}
	if lost == 0 || gone == 0 || uplinks == 0 {
		t.Errorf("%d lost pairs, %d hosts cut off, %d uplinks lost: the draw is too narrow", lost, gone, uplinks)
	}
}

// membersOf says by NodeID which adapters are in a group of draw, by their names alone.
func membersOf(f *fabric.Fabric, some map[string]*regexp.Regexp, grouping, group string) []bool {
	in := make([]bool, f.NumNodes())
	for n := f.NumSwitches(); n < f.NumNodes(); n++ {
		host := strings.Fields(f.Name(fabric.NodeID(n)).Text)[0]
		switch {
		case grouping == "rack":
			in[n] = strings.HasPrefix(host, group+"n")
		case group == groups.NoGroup:
			in[n] = !some["a"].MatchString(host) && !some["b"].MatchString(host)
		default:
			in[n] = some[group].MatchString(host)
		}
	}
	return in
}

// recount counts what Measure says of g, a fabric with fewer cables than f: pair by pair, path by
// path.
func recount(f, g *fabric.Fabric, tables *lft.Tables, in []bool) groups.State {
	x := groups.State{Traffic: &groups.Traffic{}}
	leaf := make(map[fabric.NodeID]bool)  // in f
	still := make(map[fabric.NodeID]bool) // in g
	for _, p := range f.CAPorts() {
		if in[f.Owner(p)] {
			leaf[f.PeerSwitch(p)] = true
			if g.Peer(p) != fabric.NoPort {
				still[f.PeerSwitch(p)] = true
			}
		}
	}
	x.Leaves = len(still)
	routes := make(map[fabric.PortID]int64)
	for _, src := range g.CAPorts() {
		for _, dst := range g.CAPorts() {
			for lid := range g.AllLIDs(dst) {
				if src == dst {
					continue
				}
				ours := in[g.Owner(src)] || in[g.Owner(dst)]
				path, err := tables.Path(g, src, lid, nil)
				if ours {
					x.Pairs++
				}
				if err != nil {
					if ours {
						x.Lost++
					}
					continue
				}
				for _, c := range path {
					routes[c]++
				}
			}
		}
	}
	for p := range fabric.PortID(g.NumPorts()) {
		from, to := g.Owner(p), g.PeerSwitch(p)
		if !g.IsSwitch(from) || to == fabric.NoNode || leaf[from] == leaf[to] {
			continue
		}
		if leaf[from] {
			x.Uplinks++
		}
		x.MaxRoutes = max(x.MaxRoutes, routes[p])
	}
	x.CutOff = len(cutOff(g, in))
	return x
}

// cutOff lists the hosts of a group that reach less than half as many hosts as the one that
// reaches most, over any of their ports.
func cutOff(g *fabric.Fabric, in []bool) (list []string) {
	reach := make(map[string]int) // by host: hosts that one of its ports reaches, the most of them
	ours := make(map[string]bool)
	most := 0
	for n := g.NumSwitches(); n < g.NumNodes(); n++ {
		host := strings.Fields(g.Name(fabric.NodeID(n)).Text)[0]
		ours[host] = ours[host] || in[n]
		reach[host] += 0
		for num := fabric.PortNum(1); num <= g.Node(fabric.NodeID(n)).NumPorts; num++ {
			seen := map[fabric.NodeID]bool{g.PeerSwitch(g.Port(fabric.NodeID(n), num)): true}
			if seen[fabric.NoNode] {
				continue
			}
			for more := true; more; {
				more = false
				for s := range seen {
					for _, to := range g.Neighbors(s) {
						more = more || !seen[to]
						seen[to] = true
					}
				}
			}
			hosts := make(map[string]bool)
			for _, p := range g.CAPorts() {
				if seen[g.PeerSwitch(p)] {
					hosts[strings.Fields(g.Name(g.Owner(p)).Text)[0]] = true
				}
			}
			reach[host] = max(reach[host], len(hosts))
		}
		most = max(most, reach[host])
	}
	for host, is := range ours {
		if is && (reach[host] == 0 || 2*reach[host] < most) {
			list = append(list, host)
		}
	}
	return list
}

// checkFindings holds findings by group to those of the whole fabric: what is about a host is in its
// groups, and each grouping has all findings.
func checkFindings(t *testing.T, seed uint64, f *fabric.Fabric, some map[string]*regexp.Regexp, states []groups.State, list []verify.Finding) {
	t.Helper()
	inGrouping := make(map[string]int)
	for i := range states {
		x := &states[i]
		in := membersOf(f, some, x.Grouping, x.Group)
		about := make(map[string]int) // by rule: findings about LIDs of the group's hosts, and their switches
		for k := range list {
			p := f.LIDPort(list[k].LID)
			s, ok := f.SwitchByGUID(list[k].Switch)
			if p != fabric.NoPort && in[f.Owner(p)] || ok && slices.ContainsFunc(f.EndPortsOn(s), func(p fabric.PortID) bool { return in[f.Owner(p)] }) {
				about[list[k].Rule]++
			}
		}
		for _, sum := range x.Findings {
			inGrouping[x.Grouping] += sum.Count
			if about[sum.Rule] > sum.Count {
				t.Errorf("seed %d, %s %s: %d findings of %s, and %d are about its hosts", seed, x.Grouping, x.Group, sum.Count, sum.Rule, about[sum.Rule])
			}
			delete(about, sum.Rule)
		}
		if len(about) > 0 {
			t.Errorf("seed %d, %s %s: no findings of %v", seed, x.Grouping, x.Group, about)
		}
	}
	for _, grouping := range []string{"rack", "some"} {
		if inGrouping[grouping] < len(list) {
			t.Errorf("seed %d: %s has %d of %d findings", seed, grouping, inGrouping[grouping], len(list))
		}
	}
}

// FuzzRead reads anything as groups and as the file that they name: an error has no result, and
// what was read is found in a fabric.
func FuzzRead(f *testing.F) {
	for _, text := range [][2]string{
		{"rack: {r1: 'n[1-2]', r2: ['n3', 're:^n4']}\n", ""},
		{"a: re:^(n)\nhost-regexp: '^(\\S+)'\n", ""},
		{"a: slurm:x", "NodeName=n[1-4] Feature=f\nNodeSet=s Feature=f\nPartitionName=p Nodes=s,ALL \\\n X=1\ninclude x\n"},
		{"a: {b: '@c,@d:*', c: n1}\nd: {e: 're:n', f: '@a:c'}", ""},
		{"a: slurm:x", "SwitchName=s Nodes=n[1-2] Switches=x\n"},
	} {
		f.Add(text[0], text[1])
	}
	tree := short.Must(gen.FatTree(gen.FatTreeSpec{Radix: 4, Levels: 2}))(f)
	tree = rename(tree, []string{"n1", "n2", "n3 mlx5_0"})
	f.Fuzz(func(t *testing.T, text, other string) {
		x, err := groups.Read("groups", func(name string) ([]byte, error) {
			if name == "groups" {
				return []byte(text), nil
			}
			return []byte(other), nil
		})
		if (x == nil) == (err == nil) {
			t.Fatalf("%v, %v", x, err)
		}
		if err != nil {
			return
		}
		s, err := x.In(tree)
		if err != nil {
			return
		}
		for i := range s.Groups {
			if g := &s.Groups[i]; len(g.Hosts) > len(g.Nodes) || !slices.IsSorted(g.Nodes) {
				t.Fatalf("%+v", g)
			}
		}
	})
}
