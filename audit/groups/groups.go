package groups

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/names"
	"github.com/ibweave/ibweave/internal/hostlist"
	"github.com/ibweave/ibweave/internal/text"
)

// Set is the groups of a file, found in a fabric.
type Set struct {
	// Groups is in the order of the file. The last one of each grouping is NoGroup, the hosts that
	// are in no other.
	Groups []Group
	// Notes tell which hosts of the file the fabric lacks, with file and line, and which hosts of
	// the fabric are in no group.
	Notes []string

	f     *fabric.Fabric
	hosts []names.Host
	of    [][]int32 // by NodeID: the groups of an adapter, or those that use a switch as a leaf
	cut   []bool    // by host: it is cut off in f
}

// Group is a group of hosts.
type Group struct {
	Grouping, Name string
	Hosts          []int32         // indices of hosts, ascending
	Nodes          []fabric.NodeID // adapters of these hosts
	Absent         int             // number of names in the file that the fabric lacks
	// Uplinks lists the ports by which its leaves lead to other switches. A leaf is a switch that a
	// host of the group is cabled to.
	Uplinks []fabric.PortID
	Leaves  []fabric.NodeID // ascending

	file string // where it is defined; "" for none
	line int
}

// HostsOf returns the hosts of a group, in natural order.
func (s *Set) HostsOf(g *Group) []names.Host {
	return text.Each(g.Hosts, func(h int32) names.Host { return s.hosts[h] })
}

func (g *Group) name() Name { return Name{g.Grouping, g.Name} }

// String returns such as "rack r12".
func (g *Group) String() string { return g.name().String() }

// Part counts the hosts of a group that are among given hosts.
type Part struct {
	Name
	Hosts int `json:"hosts"`
	Of    int `json:"of"` // hosts that the group has
}

// Parts counts by group the hosts that have one of the adapters, in the order of the file. Groups
// without such a host are left out.
func (s *Set) Parts(adapters []fabric.NodeID) []Part {
	in := make(map[fabric.NodeID]bool, len(adapters))
	for _, n := range adapters {
		in[n] = true
	}
	list := []Part{}
	for i := range s.Groups {
		g := &s.Groups[i]
		hosts := text.CountIf(g.Hosts, func(h int32) bool {
			return slices.ContainsFunc(s.hosts[h].Nodes, func(n fabric.NodeID) bool { return in[n] })
		})
		if hosts > 0 {
			list = append(list, Part{g.name(), hosts, len(g.Hosts)})
		}
	}
	return list
}

// ErrNoHosts is the error that the fabric has no host of a file.
var ErrNoHosts = errors.New("no group has a host of the fabric")

// hostKinds are the kinds of nodes that groups may have: all that run an operating system.
var hostKinds = []fabric.Kind{fabric.HostKind, fabric.ServiceKind, fabric.GatewayKind}

// In finds the groups in a fabric, ignoring case in names of hosts. The error wraps ErrNoHosts.
func (x *File) In(f *fabric.Fabric) (*Set, error) {
	s := &Set{f: f, of: make([][]int32, f.NumNodes())}
	s.hosts, _ = names.Hosts(f, x.host, hostKinds...)
	byName := make(map[string]int32)
	for i := range s.hosts {
		byName[strings.ToLower(s.hosts[i].Name)] = int32(i)
	}
	found := false
	for i := range x.groupings {
		g := &x.groupings[i]
		grouped := make([]bool, len(s.hosts))
		for _, d := range g.definitions(s.hosts) {
			hosts, absent := d.in(s.hosts, byName)
			for _, h := range hosts {
				grouped[h], found = true, true
			}
			s.note(g.name, &d, len(hosts), absent)
			s.add(Group{Grouping: g.name, Name: d.name, Hosts: hosts, Absent: len(absent), file: d.file, line: d.line})
		}
		var rest []int32
		var called []string
		for h, is := range grouped {
			if !is {
				rest, called = append(rest, int32(h)), append(called, s.hosts[h].Name)
			}
		}
		s.add(Group{Grouping: g.name, Name: NoGroup, Hosts: rest})
		if len(rest) > 0 {
			s.Notes = append(s.Notes, fmt.Sprintf("%s: %s in no %s: %s", x.name, text.Count(len(rest), "host is", "hosts are"), g.name, hostlist.Shorten(hostlist.Fold(called))))
		}
	}
	s.cut = s.cutOff(f)
	switch {
	case found:
		return s, nil
	case len(s.hosts) == 0:
		return nil, fmt.Errorf("%s: %w, in which no adapter describes itself by the name of one; want descriptions like \"n001 HCA-1\", %s: in the file, or a --node-name-map",
			x.name, ErrNoHosts, hostRegexp)
	}
	all := text.Each(s.hosts, func(h names.Host) string { return h.Name })
	return nil, fmt.Errorf("%s: %w, whose hosts are called %s", x.name, ErrNoHosts, hostlist.Shorten(hostlist.Fold(all)))
}

// note adds a note on the hosts of a definition that are not in the fabric.
func (s *Set) note(grouping string, d *definition, hosts int, absent []string) {
	what := "no host of the fabric is in it"
	switch {
	case len(absent) == 0 && hosts > 0:
		return
	case len(absent) > 0 && hosts == 0:
		what = "none of its hosts is in the fabric: " + hostlist.Shorten(hostlist.Fold(absent))
	case len(absent) > 0:
		what = fmt.Sprintf("%d of %d hosts are not in the fabric: %s", len(absent), len(absent)+hosts, hostlist.Shorten(hostlist.Fold(absent)))
	}
	s.Notes = append(s.Notes, fmt.Sprintf("%s:%d: %s %s: %s", d.file, d.line, grouping, d.name, what))
}

// definitions lists the groups of a grouping: those in the file, or one for each text that
// its pattern finds in names of hosts.
func (g *grouping) definitions(hosts []names.Host) []definition {
	if g.each == nil {
		return g.groups
	}
	byName := make(map[string]*definition)
	var found []string
	for i := range hosts {
		m := g.each.FindStringSubmatch(hosts[i].Name)
		if m == nil || m[min(1, len(m)-1)] == "" {
			continue
		}
		name := m[min(1, len(m)-1)]
		if byName[name] == nil {
			byName[name] = &definition{name: name}
			found = append(found, name)
		}
		byName[name].hosts = append(byName[name].hosts, hosts[i].Name)
	}
	return text.Each(text.SortNatural(found), func(name string) definition { return *byName[name] })
}

// in returns the hosts of a definition, ascending, and its names that the fabric lacks.
func (d *definition) in(hosts []names.Host, byName map[string]int32) (found []int32, absent []string) {
	for _, name := range d.hosts {
		if h, ok := byName[strings.ToLower(name)]; ok {
			found = append(found, h)
		} else {
			absent = append(absent, name)
		}
	}
	for h := range hosts {
		if slices.ContainsFunc(d.patterns, func(re *regexp.Regexp) bool { return re.MatchString(hosts[h].Name) }) {
			found = append(found, int32(h))
		}
	}
	slices.Sort(found)
	slices.Sort(absent)
	return slices.Compact(found), slices.Compact(absent)
}

// add adds a group, and finds its adapters, leaves and uplinks.
func (s *Set) add(g Group) {
	for _, h := range g.Hosts {
		g.Nodes = append(g.Nodes, s.hosts[h].Nodes...)
	}
	slices.Sort(g.Nodes)
	g.Leaves = leavesOf(s.f, g.Nodes)
	for _, leaf := range g.Leaves {
		ports, to := s.f.SwitchLinks(leaf)
		for i, p := range ports {
			if _, inside := slices.BinarySearch(g.Leaves, to[i]); !inside {
				g.Uplinks = append(g.Uplinks, p)
			}
		}
	}
	index := int32(len(s.Groups))
	for _, n := range slices.Concat(g.Nodes, g.Leaves) {
		s.of[n] = append(s.of[n], index)
	}
	s.Groups = append(s.Groups, g)
}

// leavesOf lists the switches that nodes are cabled to, ascending.
func leavesOf(f *fabric.Fabric, nodes []fabric.NodeID) (leaves []fabric.NodeID) {
	for _, n := range nodes {
		for p := range f.Cabled(n) {
			if s := f.PeerSwitch(p); s != fabric.NoNode {
				leaves = append(leaves, s)
			}
		}
	}
	slices.Sort(leaves)
	return slices.Compact(leaves)
}

// cutOff returns by host true if each connected part of g that it is in has less than half as many
// hosts as the largest part. g has the nodes of the set's fabric.
func (s *Set) cutOff(g *fabric.Fabric) []bool {
	parts := g.Components()
	size := make([]int, len(parts.List))
	within := func(h int) (list []int32) {
		for _, leaf := range leavesOf(g, s.hosts[h].Nodes) {
			if part := parts.Of[leaf]; !slices.Contains(list, part) {
				list = append(list, part)
			}
		}
		return list
	}
	most := 0
	for h := range s.hosts {
		for _, part := range within(h) {
			size[part]++
			most = max(most, size[part])
		}
	}
	cut := make([]bool, len(s.hosts))
	for h := range s.hosts {
		cut[h] = !slices.ContainsFunc(within(h), func(part int32) bool { return 2*size[part] >= most })
	}
	return cut
}

// Find finds a group by its name, or by GROUPING:GROUP.
// The error lists the known names, or is a *fabric.ParseError for a group without hosts.
func (s *Set) Find(name string) (*Group, error) {
	var found []*Group
	var known []string
	for i := range s.Groups {
		g := &s.Groups[i]
		if g.Name == NoGroup {
			continue
		}
		known = append(known, g.Grouping+":"+g.Name)
		if name == g.Grouping+":"+g.Name || name == g.Name {
			found = append(found, g)
		}
	}
	switch {
	case len(found) == 0:
		return nil, fmt.Errorf("no group is called %q; want one of %s", name, text.Few(known, 20))
	case len(found) > 1:
		return nil, fmt.Errorf("%d groups are called %q; want GROUPING:GROUP, like %s:%s", len(found), name, found[0].Grouping, name)
	case len(found[0].Hosts) == 0:
		return nil, lineError(found[0].file, found[0].line, "", fmt.Errorf("no host of %s is in the fabric", found[0]))
	}
	return found[0], nil
}
