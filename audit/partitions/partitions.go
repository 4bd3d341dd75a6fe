// Package partitions audits the P_Key tables of a fabric: who can talk to whom by them, and
// whether they are what a partitions.conf of OpenSM asks for. It makes no promise to other
// modules.
//
// Partitions are checked one by one, as the memberships of all end ports by the tables and by the
// file. That takes time for the entries of the tables and the words of the file, and memory for one
// partition.
package partitions

import (
	"cmp"
	_ "embed"
	"fmt"
	"maps"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/names"
	"github.com/ibweave/ibweave/internal/hostlist"
	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/sminterface/dump"
	"github.com/ibweave/ibweave/verify"
)

// Audit is the input: what is known of the partitions of a fabric.
type Audit struct {
	Fabric *fabric.Fabric
	// Tables has the P_Key tables by fabric.PortID; nil for ports whose table is unknown. If it is
	// nil, Check uses the tables that OpenSM would make of Conf.
	Tables [][]fabric.PKey
	// Conf is the file that the tables should agree with; nil for none. Name is its name.
	Conf *dump.PartitionsConf
	Name string
	// Manager is the port of the master subnet manager; NoPort if unknown.
	Manager fabric.PortID
}

// Result is the result of Check.
type Result struct {
	Counts    verify.PartitionCounts
	Findings  []verify.Finding // in the order of Rules, then by partition
	Undecided []verify.Undecided
}

// maxPorts bounds the ports of a finding.
const maxPorts = 100

// checker is an audit under way.
type checker struct {
	*Audit
	ends    []fabric.PortID
	index   map[fabric.GUID]int // by port GUID: index in ends
	entries map[fabric.PKey][]entry
	said    map[fabric.PKey]*dump.Partition // partitions of the file, by P_Key
	manager int                             // index in ends of the subnet manager's port, or -1
	found   []verify.Finding
	partner []bool // by index in ends: a host that can talk to another
	member  []bool // by index in ends: it is in a partition
	inIt    []bool // by index in ends: it is in the default partition
	unsure  bool   // a finding depends on which port is the subnet manager's
}

type entry struct {
	end int // index in ends
	as  dump.Membership
}

// TableRules are the rules that need all P_Key tables.
var TableRules = []string{Missing, Unexpected, WrongMembership, NoDefaultPartition, NoFullMember, IsolatedHost}

// Check audits partitions. Ports whose table is unknown are ignored.
func Check(a *Audit) *Result {
	c := &checker{Audit: a, index: map[fabric.GUID]int{}, entries: map[fabric.PKey][]entry{}, said: map[fabric.PKey]*dump.Partition{}, manager: -1}
	a.Fabric.EndPorts(func(p fabric.PortID) {
		if a.Tables == nil || a.Tables[p] != nil {
			c.index[a.Fabric.PortGUID(p)] = len(c.ends)
			c.ends = append(c.ends, p)
		}
	})
	if a.Manager != fabric.NoPort {
		if i, known := c.index[a.Fabric.PortGUID(a.Manager)]; known {
			c.manager = i
		}
	}
	n := len(c.ends)
	c.partner, c.member, c.inIt = make([]bool, n), make([]bool, n), make([]bool, n)
	for i, p := range c.ends {
		if a.Tables == nil {
			break
		}
		for _, key := range a.Tables[p] {
			as := dump.Limited
			if key.IsFull() {
				as = dump.Full
			}
			c.entries[key.Partition()] = append(c.entries[key.Partition()], entry{i, as})
		}
	}
	keys := slices.Collect(maps.Keys(c.entries))
	if a.Conf != nil {
		for i := range a.Conf.Partitions {
			x := &a.Conf.Partitions[i]
			c.said[x.PKey] = x
			keys = append(keys, x.PKey)
		}
	}
	slices.Sort(keys)
	r := &Result{Counts: verify.PartitionCounts{Ports: n, List: []verify.Partition{}}}
	r.Counts.List = text.Each(slices.Compact(keys), c.look)
	r.Counts.Partitions = len(r.Counts.List)
	c.judgePorts()
	c.judgeConf()
	collector := verify.NewCollector(&r.Findings, Rules, verify.DefaultFindings)
	for i := range Rules {
		for _, f := range c.found {
			if f.Rule == Rules[i].Name {
				collector.Add(f.Rule, f.Count, func(x *verify.Finding) { *x = f })
			}
		}
	}
	collector.Close()
	if c.unsure {
		for _, rule := range []string{Missing, WrongMembership} {
			r.Undecided = append(r.Undecided, verify.Undecided{Rule: rule, Reason: "which port is SELF, that of the subnet manager, is not known; --sm NODE says it"})
		}
	}
	return r
}

// look checks a partition and counts its members, by the tables or, without any, by the file.
func (c *checker) look(key fabric.PKey) verify.Partition {
	said := cmp.Or(c.said[key], &dump.Partition{PKey: key})
	wanted, asSelf := c.wanted(said, false), c.wanted(said, true)
	if i := c.manager; i >= 0 {
		wanted[i] = asSelf[i]
		asSelf = wanted
	}
	found := wanted
	if c.Tables != nil {
		found = make([]dump.Membership, len(c.ends))
		for _, e := range c.entries[key] {
			if found[e.end] != dump.NoMember && found[e.end] != e.as {
				e.as = dump.Both
			}
			found[e.end] = e.as
		}
		if c.Conf != nil {
			c.compare(said, found, wanted, asSelf)
		}
	}
	c.talk(key, found)
	var full, limited []int
	for i, as := range found {
		switch {
		case as >= dump.Full:
			full = append(full, i)
		case as == dump.Limited:
			limited = append(limited, i)
		}
	}
	if len(full) == 0 && len(limited) > 0 {
		c.add(NoFullMember, said.Line, limited, "%s has %s and no full member to talk to",
			partitionName(said), text.CountGrouped(len(limited), "limited member", "limited members"))
	}
	return verify.Partition{PKey: key, Name: said.Name, Full: len(full), Limited: len(limited), FullHosts: c.hosts(full), LimitedHosts: c.hosts(limited)}
}

// wanted returns the memberships that the file gives, by index in ends: for a port, by the last word
// about it. If self is set each port counts as the subnet manager's.
func (c *checker) wanted(p *dump.Partition, self bool) []dump.Membership {
	as := make([]dump.Membership, len(c.ends))
	var done [dump.SelfPort + 1]bool // only the last word of a kind counts
	for i := len(p.Members) - 1; i >= 0 && !done[dump.AllPorts]; i-- {
		m := &p.Members[i]
		if m.Kind == dump.OnePort {
			if at, known := c.index[m.GUID]; known && as[at] == dump.NoMember {
				as[at] = m.As
			}
			continue
		}
		if done[m.Kind] || m.Kind == dump.SelfPort && !self {
			continue
		}
		done[m.Kind] = true
		for at, end := range c.ends {
			node := c.Fabric.Node(c.Fabric.Owner(end)).Type
			if as[at] == dump.NoMember && (m.Kind == dump.AllPorts || m.Kind == dump.SelfPort || m.Kind == dump.AllCAs && node == fabric.CA ||
				m.Kind == dump.AllSwitches && node == fabric.Switch || m.Kind == dump.AllRouters && node == fabric.Router) {
				as[at] = m.As
			}
		}
	}
	return as
}

// agrees returns true if a table has what the file wants. If that is Both, full membership is
// enough: OpenSM adds limited only where it allows both.
func agrees(found, wanted dump.Membership) bool {
	return found == wanted || wanted == dump.Both && found == dump.Full
}

// compare compares memberships found in the tables with those wanted by the file; asSelf has those
// wanted of a port if it is the subnet manager's.
func (c *checker) compare(said *dump.Partition, found, wanted, asSelf []dump.Membership) {
	var differ [dump.Both + 1][dump.Both + 1][]int // by membership found and wanted: ends
	for i, as := range found {
		switch one, other := agrees(as, wanted[i]), agrees(as, asSelf[i]); {
		case wanted[i] != asSelf[i] && (one || other):
			c.unsure = true
		case !one:
			differ[as][wanted[i]] = append(differ[as][wanted[i]], i)
		}
	}
	name := partitionName(said)
	for found, byWanted := range differ {
		for wanted, ends := range byWanted {
			is, should := dump.Membership(found), dump.Membership(wanted)
			switch {
			case len(ends) == 0:
			case is == dump.NoMember:
				c.add(Missing, said.Line, ends, "%s: no P_Key of %s, and partitions.conf says %s", c.nameEnds(ends), name, should)
			case should == dump.NoMember:
				c.add(Unexpected, said.Line, ends, "%s: %s in %s, and partitions.conf does not put them there", c.nameEnds(ends), is, name)
			default:
				c.add(WrongMembership, said.Line, ends, "%s: %s in %s, and partitions.conf says %s", c.nameEnds(ends), is, name, should)
			}
		}
	}
}

// partitionName names a partition for messages.
func partitionName(p *dump.Partition) string {
	if p.Name == "" {
		return "partition " + p.PKey.String()
	}
	return fmt.Sprintf("partition %s (%q)", p.PKey, fabric.Printable(p.Name))
}

// nameEnds writes the number of ports, and their hosts in short.
func (c *checker) nameEnds(ends []int) string {
	_, hosts := names.Fold(c.Fabric, c.nodes(ends))
	return text.CountGrouped(len(ends), "port", "ports") + " (" + hostlist.Shorten(hosts) + ")"
}

func (c *checker) nodes(ends []int) []fabric.NodeID {
	return text.Each(ends, func(i int) fabric.NodeID { return c.Fabric.Owner(c.ends[i]) })
}

// hosts returns the names of the hosts of ports.
func (c *checker) hosts(ends []int) string {
	_, folded := names.Fold(c.Fabric, c.nodes(slices.DeleteFunc(slices.Clone(ends), func(i int) bool { return !c.isHost(i) })))
	return folded
}

// isHost returns true for a port of a host: not of a switch, nor of an aggregation node.
func (c *checker) isHost(i int) bool {
	n := c.Fabric.Owner(c.ends[i])
	return !c.Fabric.IsSwitch(n) && c.Fabric.Kind(n) != fabric.AggregationKind
}

type nodeSet map[fabric.NodeID]bool

// hasOther returns true if a node other than n is in the set.
func (s nodeSet) hasOther(n fabric.NodeID) bool { return len(s) > 1 || len(s) == 1 && !s[n] }

// talk marks the hosts that can talk to another in partition key, by the memberships found.
func (c *checker) talk(key fabric.PKey, found []dump.Membership) {
	full, any := nodeSet{}, nodeSet{}
	for i, as := range found {
		if as == dump.NoMember {
			continue
		}
		c.member[i] = true
		c.inIt[i] = c.inIt[i] || key == fabric.DefaultPartition
		if !c.isHost(i) || i == c.manager && key == fabric.DefaultPartition {
			continue
		}
		n := c.Fabric.Owner(c.ends[i])
		any[n] = true
		if as >= dump.Full {
			full[n] = true
		}
	}
	for i, as := range found {
		n := c.Fabric.Owner(c.ends[i])
		c.partner[i] = c.partner[i] || as == dump.Limited && full.hasOther(n) || as >= dump.Full && any.hasOther(n)
	}
}

// judgePorts adds findings about ports, over all their partitions.
func (c *checker) judgePorts() {
	var outside, alone []int
	hosts := nodeSet{}
	for i := range c.ends {
		if c.member[i] && !c.inIt[i] {
			outside = append(outside, i)
		}
		if !c.isHost(i) {
			continue
		}
		hosts[c.Fabric.Owner(c.ends[i])] = true
		if c.member[i] && !c.partner[i] && i != c.manager {
			alone = append(alone, i)
		}
	}
	if len(outside) > 0 {
		c.add(NoDefaultPartition, 0, outside, "in partitions, but not in the default one, 0x7fff: %s", c.nameEnds(outside))
	}
	if len(alone) > 0 && len(hosts) > 1 {
		c.add(IsolatedHost, 0, alone, "no other host to talk to: %s", c.nameEnds(alone))
	}
}

// judgeConf adds findings about the file alone.
func (c *checker) judgeConf() {
	if c.Conf == nil {
		return
	}
	ports := map[fabric.GUID]bool{}
	c.Fabric.EndPorts(func(p fabric.PortID) { ports[c.Fabric.PortGUID(p)] = true })
	var first *dump.Member
	unknown := map[fabric.GUID]bool{}
	for i := range c.Conf.Partitions {
		for k := range c.Conf.Partitions[i].Members {
			m := &c.Conf.Partitions[i].Members[k]
			if m.Kind != dump.OnePort || ports[m.GUID] {
				continue
			}
			if unknown[m.GUID] = true; first == nil || m.Line < first.Line {
				first = m
			}
		}
	}
	if n := len(unknown); n > 0 {
		message := fmt.Sprintf("the fabric has no end port %s", first.GUID)
		if n > 1 {
			message = fmt.Sprintf("the fabric has none of %d ports that partitions.conf names, such as %s", n, first.GUID)
		}
		if _, is := c.Fabric.NodeByGUID(first.GUID); is {
			message += ", which is the GUID of a node and not of its port"
		}
		c.add(UnknownMember, first.Line, nil, "%s", message).Count = int64(n)
	}
	for _, o := range c.Conf.Oddities {
		where := c.Name
		if o.Line > 0 {
			where = fmt.Sprintf("%s:%d", c.Name, o.Line)
		}
		c.add(ConfReadOtherwise, o.Line, nil, "%s", fabric.Printable(where+": "+o.Text))
	}
}

// add adds a finding about ports and returns it. line is its line of the file, 0 for none.
func (c *checker) add(rule string, line int, ends []int, format string, args ...any) *verify.Finding {
	x := verify.NewFinding(Rules, rule, max(1, len(ends)), format, args...)
	if line > 0 {
		x.File, x.Line = c.Name, line
	}
	x.Ports = append(x.Ports, text.Each(ends[:min(len(ends), maxPorts)], func(i int) verify.Endpoint { return verify.EndpointOf(c.Fabric, c.ends[i]) })...)
	c.found = append(c.found, x)
	return &c.found[len(c.found)-1]
}

// The names of the rules.
const (
	Missing            = "pkey-missing"
	Unexpected         = "pkey-unexpected"
	WrongMembership    = "pkey-membership"
	NoDefaultPartition = "no-default-partition"
	NoFullMember       = "no-full-member"
	IsolatedHost       = "isolated-host"
	UnknownMember      = "unknown-member"
	ConfReadOtherwise  = "partitions-conf"
)

// Rules lists the rules about partitions, the gravest first.
var Rules = verify.ParseRules(ruleTexts)

//go:embed rules.txt
var ruleTexts string
