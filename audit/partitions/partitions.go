// Package partitions audits the P_Key tables of a fabric: who can talk to whom by them, and
// whether they are what a partitions.conf of OpenSM asks for. It makes no promise to other
// modules.
//
// Partitions are looked at one after another, each as the memberships of all end ports: of
// the tables, and of the file. That takes time by the entries of the tables and the words of the
// file, and memory by one partition.
package partitions

import (
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

// Audit is what is known of the partitions of a fabric.
type Audit struct {
	Fabric *fabric.Fabric
	// Tables is the P_Key tables by fabric.PortID, nil for ports whose table is not known.
	// Without Tables, those that OpenSM makes of Conf are looked at.
	Tables [][]fabric.PKey
	// Conf is what the tables are held to, nil for nothing, and Name its file.
	Conf *dump.PartitionsConf
	Name string
	// Manager is the port of the master subnet manager, NoPort when it is not known.
	Manager fabric.PortID
}

// Result is what is found.
type Result struct {
	Counts    verify.PartitionCounts
	Findings  []verify.Finding // in the order of Rules, then by partition
	Undecided []verify.Undecided
}

// maxPorts bounds the ports of a finding.
const maxPorts = 100

// view is a partition: how the end ports are in it, by index in ends.
type view struct {
	key    fabric.PKey
	found  []dump.Membership // by tables, or by the file without tables
	wanted []dump.Membership // by the file, if the subnet manager is at another port
	asSelf []dump.Membership // by the file, if it is at this one
}

// checker is an audit under way.
type checker struct {
	*Audit
	ends    []fabric.PortID
	index   map[fabric.GUID]int // in ends
	entries map[fabric.PKey][]entry
	said    map[fabric.PKey]*dump.Partition // of the file
	manager int                             // index in ends of the subnet manager's port, -1 when it is not known
	list    map[string][]verify.Finding     // by rule
	partner []bool                          // by index in ends: a host that has somebody to talk to
	member  []bool                          // it is in a partition
	inIt    []bool                          // it is in the default partition
	unsure  bool                            // the subnet manager's port would decide
}

// entry is one of a P_Key table.
type entry struct {
	end int // index in ends
	as  dump.Membership
}

// TableRules are those that rest on all P_Key tables.
var TableRules = []string{Missing, Unexpected, WrongMembership, NoDefaultPartition, NoFullMember, IsolatedHost}

// Check audits partitions. Ports whose table is not known count for nothing.
func Check(a *Audit) *Result {
	c := &checker{Audit: a, index: map[fabric.GUID]int{}, entries: map[fabric.PKey][]entry{}, said: map[fabric.PKey]*dump.Partition{}, manager: -1, list: map[string][]verify.Finding{}}
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
	r := &Result{Counts: verify.PartitionCounts{Ports: n, List: []verify.Partition{}}}
	v := &view{found: make([]dump.Membership, n), wanted: make([]dump.Membership, n), asSelf: make([]dump.Membership, n)}
	keys := slices.Collect(maps.Keys(c.entries))
	if a.Conf != nil {
		for i := range a.Conf.Partitions {
			x := &a.Conf.Partitions[i]
			c.said[x.PKey] = x
			keys = append(keys, x.PKey)
		}
	}
	slices.Sort(keys)
	for _, key := range slices.Compact(keys) {
		v.key = key
		r.Counts.List = append(r.Counts.List, c.look(v))
	}
	r.Counts.Partitions = len(r.Counts.List)
	c.judgePorts()
	c.judgeConf()
	found := verify.NewCollector(&r.Findings, Rules, verify.DefaultFindings)
	for i := range Rules {
		for _, f := range c.list[Rules[i].Name] {
			found.Add(f.Rule, f.Count, func(x *verify.Finding) { *x = f })
		}
	}
	found.Close()
	if c.unsure {
		for _, rule := range []string{Missing, WrongMembership} {
			r.Undecided = append(r.Undecided, verify.Undecided{Rule: rule, Reason: "which port is SELF, that of the subnet manager, is not known; --sm NODE says it"})
		}
	}
	return r
}

// look takes the members of a partition, and judges them.
func (c *checker) look(v *view) verify.Partition {
	said := c.said[v.key]
	if said != nil {
		c.fill(said, v.wanted, false)
		c.fill(said, v.asSelf, true)
	} else {
		clear(v.wanted)
		clear(v.asSelf)
	}
	if i := c.manager; i >= 0 {
		v.wanted[i] = v.asSelf[i]
		copy(v.asSelf, v.wanted)
	}
	if c.Tables == nil {
		copy(v.found, v.wanted)
	} else {
		clear(v.found)
		for _, e := range c.entries[v.key] {
			if v.found[e.end] != dump.NoMember && v.found[e.end] != e.as {
				e.as = dump.Both
			}
			v.found[e.end] = e.as
		}
		if c.Conf != nil {
			c.compare(v, said)
		}
	}
	p := c.count(v)
	if said != nil {
		p.Name = said.Name
	}
	c.talk(v)
	if p.Full == 0 && p.Limited > 0 {
		c.add(NoFullMember, said, c.pick(v, dump.Limited, dump.Both), "%s has %s and no full member to talk to",
			partitionName(v.key, said), text.CountGrouped(p.Limited, "limited member", "limited members"))
	}
	return p
}

// fill takes the memberships that the file gives: of several words for a port the last counts.
// self says that each port is taken for that of the subnet manager.
func (c *checker) fill(p *dump.Partition, into []dump.Membership, self bool) {
	clear(into)
	var done [dump.SelfPort + 1]bool // a kind counts once, read from the end
	for i := len(p.Members) - 1; i >= 0 && !done[dump.AllPorts]; i-- {
		m := &p.Members[i]
		if m.Kind == dump.OnePort {
			if at, known := c.index[m.GUID]; known && into[at] == dump.NoMember {
				into[at] = m.As
			}
			continue
		}
		if done[m.Kind] || m.Kind == dump.SelfPort && !self {
			continue
		}
		done[m.Kind] = true
		for at, end := range c.ends {
			node := c.Fabric.Node(c.Fabric.Owner(end)).Type
			if into[at] == dump.NoMember && (m.Kind == dump.AllPorts || m.Kind == dump.SelfPort || m.Kind == dump.AllCAs && node == fabric.CA ||
				m.Kind == dump.AllSwitches && node == fabric.Switch || m.Kind == dump.AllRouters && node == fabric.Router) {
				into[at] = m.As
			}
		}
	}
}

// agrees says whether a table has what the file wants. Both is full, and limited besides where
// OpenSM allows it.
func agrees(found, wanted dump.Membership) bool {
	return found == wanted || wanted == dump.Both && found == dump.Full
}

// compare holds the tables to the file.
func (c *checker) compare(v *view, said *dump.Partition) {
	differs := func(i int) bool {
		if v.wanted[i] != v.asSelf[i] && (agrees(v.found[i], v.wanted[i]) || agrees(v.found[i], v.asSelf[i])) {
			c.unsure = true
			return false
		}
		return !agrees(v.found[i], v.wanted[i])
	}
	by := map[[2]dump.Membership][]int{} // by what was found and what is wanted
	for i := range c.ends {
		if differs(i) {
			pair := [2]dump.Membership{v.found[i], v.wanted[i]}
			by[pair] = append(by[pair], i)
		}
	}
	for found := range dump.Both + 1 {
		for wanted := range dump.Both + 1 {
			ends := by[[2]dump.Membership{found, wanted}]
			if len(ends) == 0 {
				continue
			}
			who, name := c.nameEnds(ends), partitionName(v.key, said)
			switch {
			case found == dump.NoMember:
				c.add(Missing, said, ends, "%s: no P_Key of %s, and partitions.conf says %s", who, name, wanted)
			case wanted == dump.NoMember:
				c.add(Unexpected, said, ends, "%s: %s in %s, and partitions.conf does not put them there", who, found, name)
			default:
				c.add(WrongMembership, said, ends, "%s: %s in %s, and partitions.conf says %s", who, found, name, wanted)
			}
		}
	}
}

// partitionName names a partition for messages.
func partitionName(key fabric.PKey, said *dump.Partition) string {
	if said == nil || said.Name == "" {
		return "partition " + key.String()
	}
	return fmt.Sprintf("partition %s (%q)", key, fabric.Printable(said.Name))
}

// nameEnds names ports: the hosts that they are of, in short.
func (c *checker) nameEnds(ends []int) string {
	_, hosts := names.Fold(c.Fabric, c.nodes(ends))
	return text.CountGrouped(len(ends), "port", "ports") + " (" + hostlist.Shorten(hosts) + ")"
}

func (c *checker) nodes(ends []int) (nodes []fabric.NodeID) {
	for _, i := range ends {
		nodes = append(nodes, c.Fabric.Owner(c.ends[i]))
	}
	return nodes
}

// pick lists the members of a partition as least or more, and as most or less.
func (c *checker) pick(v *view, least, most dump.Membership) (ends []int) {
	for i, as := range v.found {
		if as >= least && as <= most {
			ends = append(ends, i)
		}
	}
	return ends
}

// count counts the members of a partition.
func (c *checker) count(v *view) (p verify.Partition) {
	hosts := func(ends []int) string {
		_, folded := names.Fold(c.Fabric, c.nodes(slices.DeleteFunc(ends, func(i int) bool { return !c.isHost(i) })))
		return folded
	}
	full, limited := c.pick(v, dump.Full, dump.Both), c.pick(v, dump.Limited, dump.Limited)
	p.PKey, p.Full, p.Limited = v.key, len(full), len(limited)
	p.FullHosts, p.LimitedHosts = hosts(full), hosts(limited)
	return p
}

// isHost says whether a port is of a host, which others talk to.
func (c *checker) isHost(i int) bool {
	n := c.Fabric.Owner(c.ends[i])
	return !c.Fabric.IsSwitch(n) && c.Fabric.Kind(n) != fabric.AggregationKind
}

// nodeSet is a set of nodes.
type nodeSet map[fabric.NodeID]bool

// hasOther returns true if a node but n is in the set.
func (s nodeSet) hasOther(n fabric.NodeID) bool { return len(s) > 1 || len(s) == 1 && !s[n] }

// talk notes which hosts have another one to talk to in a partition.
func (c *checker) talk(v *view) {
	full, any := nodeSet{}, nodeSet{}
	for i, as := range v.found {
		if as == dump.NoMember {
			continue
		}
		c.member[i] = true
		c.inIt[i] = c.inIt[i] || v.key == fabric.DefaultPartition
		if !c.isHost(i) || i == c.manager && v.key == fabric.DefaultPartition {
			continue
		}
		n := c.Fabric.Owner(c.ends[i])
		any[n] = true
		if as >= dump.Full {
			full[n] = true
		}
	}
	for i, as := range v.found {
		n := c.Fabric.Owner(c.ends[i])
		c.partner[i] = c.partner[i] || as == dump.Limited && full.hasOther(n) || as >= dump.Full && any.hasOther(n)
	}
}

// judgePorts is about ports in all of their partitions together.
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
		c.add(NoDefaultPartition, nil, outside, "in partitions, but not in the default one, 0x7fff: %s", c.nameEnds(outside))
	}
	if len(alone) > 0 && len(hosts) > 1 {
		c.add(IsolatedHost, nil, alone, "no other host to talk to: %s", c.nameEnds(alone))
	}
}

// judgeConf is about the file by itself.
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
		c.list[UnknownMember] = append(c.list[UnknownMember], c.finding(UnknownMember, n, first.Line, message))
	}
	for _, o := range c.Conf.Oddities {
		where := c.Name
		if o.Line > 0 {
			where = fmt.Sprintf("%s:%d", c.Name, o.Line)
		}
		c.list[ConfReadOtherwise] = append(c.list[ConfReadOtherwise], c.finding(ConfReadOtherwise, 1, o.Line, fabric.Printable(where+": "+o.Text)))
	}
}

// finding is one of a rule, at a line of the file, 0 for none.
func (c *checker) finding(name string, count, line int, message string) verify.Finding {
	x := verify.NewFinding(Rules, name, count, "%s", message)
	if line > 0 {
		x.File, x.Line = c.Name, line
	}
	return x
}

// add adds a finding about ports.
func (c *checker) add(rule string, said *dump.Partition, ends []int, format string, args ...any) {
	line := 0
	if said != nil {
		line = said.Line
	}
	x := c.finding(rule, len(ends), line, fmt.Sprintf(format, args...))
	for _, i := range ends[:min(len(ends), maxPorts)] {
		x.Ports = append(x.Ports, verify.EndpointOf(c.Fabric, c.ends[i]))
	}
	c.list[rule] = append(c.list[rule], x)
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
var Rules = []verify.Rule{
	{Name: Missing, Severity: verify.Error, Count: "ports", Summary: "ports lack a P_Key that partitions.conf gives them", Explain: `By partitions.conf the ports are in the partition, and their P_Key tables have no entry
of it: they cannot talk in it. OpenSM has not read the file since it was changed (it wants
a SIGHUP or a heavy sweep), it refused the file (its log says PARSE ERROR), or the table
was full. There is a finding for each partition.`},
	{Name: Unexpected, Severity: verify.Error, Count: "ports", Summary: "ports have a P_Key that partitions.conf does not give them", Explain: `The P_Key tables of the ports have an entry of a partition that the file does not put
them into, so that they can talk to ports that they are to be kept apart from. It is left
over from an earlier file or another subnet manager, or was written by somebody else.
There is a finding for each partition.`},
	{Name: WrongMembership, Severity: verify.Error, Count: "ports", Summary: "ports are full members where partitions.conf says limited, or the reverse", Explain: `A full member talks to all members of the partition, a limited one to full members alone.
Of several words for one port in a partition the last counts: in "0x1=full, ALL" port 0x1
is limited. There is a finding for each partition and direction.`},
	{Name: NoDefaultPartition, Severity: verify.Warning, Count: "ports", Summary: "ports are not in the default partition", Explain: `The P_Key table of the port has entries, and none of the default partition 0x7fff. The
port cannot talk to subnet administration: its host gets no path records and joins no
multicast group.`},
	{Name: NoFullMember, Severity: verify.Warning, Count: "ports", Summary: "all members of a partition are limited", Explain: `Limited members talk to full members alone (IBA 10.9.1.2), and the partition has none: no
two of its ports can talk in it. In partitions.conf a port without =full is limited unless
the partition has defmember=full. There is a finding for each partition.`},
	{Name: IsolatedHost, Severity: verify.Warning, Count: "hosts", Summary: "hosts have no other host to talk to", Explain: `In no partition of the host is another host that it can talk to: where it is a limited
member it wants a full one, where it is a full member anybody else. The port of the subnet
manager does not count in the default partition, in which it serves everybody. That is what
"Default=0x7fff : ALL, SELF=full;" makes of all hosts, as does a partitions.conf without a
line for the default partition: MPI, storage and IPoIB work between none of them.`},
	{Name: UnknownMember, Severity: verify.Warning, Count: "ports", Summary: "partitions.conf names ports that the fabric lacks", Explain: `No end port has the GUID: the host is down, its adapter was replaced, or the GUID is that of
the node (ibstat says "Node GUID") and not of the port. OpenSM passes over it in silence.
There is one finding, with the first of them.`},
	{Name: ConfReadOtherwise, Severity: verify.Warning, Count: "places", Summary: "OpenSM reads partitions.conf otherwise than it looks", Explain: `A word that OpenSM does not know is passed over or counts as limited, a later word for a
port replaces an earlier one, a line is cut at 4,094 bytes. There is a finding for each
place; docs/dev/partitions.md has the rules by which OpenSM reads the file.`},
}
