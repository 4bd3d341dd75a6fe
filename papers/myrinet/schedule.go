package myrinet

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/mft"
	"github.com/ibweave/ibweave/routing/banyan"
)

// Method is how the members of a group pass a message on.
type Method uint8

const (
	// Circuit is the Hamiltonian circuit (section 5 of the paper, M17): members
	// pass a message on to the next higher ID, the highest to the lowest.
	Circuit Method = iota
	// Tree is the rooted tree: originators send first to its root,
	// the lowest ID (section 6, M18). It is totally ordered.
	Tree
	// TreeFlood is the rooted tree on which originators start, and members pass a
	// message on to all tree neighbours but the one that it came from.
	TreeFlood
	// Repeated is the baseline for the others: an originator itself sends to every
	// other member, the one with the next higher ID first (M6 of the spec).
	Repeated
	// Doubling is recursive doubling from the only sender, or
	// else from the lowest ID, to which originators send first:
	// with each send of all that have a message, twice as many
	// have it. Members follow each other by ID from there on.
	Doubling
	// TwoPhase is the two-phase algorithm of the paper on banyan
	// networks (N7). An originator sends one packet, which
	// switches copy, to a region: as many hosts in a row as there
	// are destinations. Each of them sends to one destination.
	// Regions begin at random hosts, unless Options has a start.
	// Destinations that are a region get it in the first phase.
	//
	// On banyan networks a host of a region gets the copy at
	// its input and sends it on by its output. So an originator
	// in its own region gets a copy as well, and a destination
	// in the region may send to itself: both passes cross the
	// whole network, as in the paper. Elsewhere switches do not
	// give a host what it sent, and no host sends to itself.
	TwoPhase
)

var methods = [...]string{Circuit: "circuit", Tree: "tree", TreeFlood: "tree-flood", Repeated: "unicast", Doubling: "doubling", TwoPhase: "two-phase"}

// Methods lists the names of the methods.
func Methods() []string { return methods[:] }

// String returns the name on the command line and in files.
func (m Method) String() string {
	if int(m) < len(methods) {
		return methods[m]
	}
	return fmt.Sprintf("method %d", uint8(m))
}

// ParseMethod reads a method's name.
func ParseMethod(s string) (Method, error) {
	if i := slices.Index(methods[:], s); i >= 0 {
		return Method(i), nil
	}
	return 0, fmt.Errorf("method %q: want one of %v", s, methods)
}

// Class is the part of a host's buffers that a message takes, from 1 on.
type Class uint8

// SendBuffer is the class of the buffer where an originator
// has its message. No message that arrives is put there, so
// none waits for it, and it closes no cycle (E-M9).
const SendBuffer Class = 0

// String returns the class as in files: "send" for SendBuffer, else its number.
func (c Class) String() string {
	if c == SendBuffer {
		return "send"
	}
	return strconv.Itoa(int(c))
}

// MaxClasses is the most classes that a schedule may have.
const MaxClasses = 8

// Anyone as Send.From means any host.
const Anyone int32 = -1

// Host is an end port of a schedule, or on a banyan network a processor with two of them.
type Host struct {
	ID   int32 // 0 or more; circuits and trees follow the order of IDs
	Port fabric.GUID
	LID  fabric.LID  // of Port, where messages are sent to
	Out  fabric.GUID // the port that sends: Port, except on banyan networks
}

// Send is how a host sends on a message of a group to another host.
type Send struct {
	At    int32 // index of the host
	Held  Class // of the buffer that has the message there
	From  int32 // index of the host that it came from, or Anyone
	To    int32 // index of the host that gets it
	More  int32 // TwoPhase: hosts after To that get it in the same packet; but see receivers
	Class Class // of the buffer that it asks for at To
}

// Group is the compiled table of a group.
type Group struct {
	Name   string
	Method Method
	// Hops, if not 0, limits how often a message is sent on in a
	// row: an originator puts it into the header, each host takes
	// one away, and the host that gets 0 does not send on.
	Hops int
	// Members and Senders are indices of hosts, ascending. Only senders originate.
	Members, Senders []int32
	// Sends is ordered by At, Held and From; sends of one host for
	// one message are in the order in which it sends them.
	Sends []Send
}

// Ordered returns true if all members get the messages of the group in one order, as
// long as no host sends a message before one that it has to send again.
func (g *Group) Ordered() bool {
	return g.Method == Tree || g.Method == Doubling || g.Method == Circuit && g.Hops == 0
}

// Schedule says who sends to whom, in which class of buffers.
type Schedule struct {
	Classes int    // 1 to MaxClasses
	Hosts   []Host // ascending by ID
	Groups  []Group
}

// Of returns what a host does with a message of g that it holds in class held and
// got from host from. at and from are indices; for SendBuffer, from does not matter.
func (g *Group) Of(at int32, held Class, from int32) []Send {
	key := func(s Send, from int32) int {
		return cmp.Or(cmp.Compare(s.At, at), cmp.Compare(s.Held, held), cmp.Compare(s.From, from))
	}
	for _, f := range [2]int32{from, Anyone} {
		a, ok := slices.BinarySearchFunc(g.Sends, f, key)
		if !ok {
			continue
		}
		b := a
		for b < len(g.Sends) && key(g.Sends[b], f) == 0 {
			b++
		}
		return g.Sends[a:b]
	}
	return nil
}

// Options are the choices of Build.
type Options struct {
	Method Method
	// Classes of buffers, 1 or 2; 0 means 2. With one class
	// schedules can deadlock, which Check finds.
	Classes int
	// Ordered makes originators of a Circuit send to the lowest ID, which starts
	// the circuit (M17). So all members get all messages of the group in one
	// order, originators their own, too. Trees are always ordered, floods never.
	Ordered bool
	// Return makes a message of a Circuit come back to its originator, to
	// confirm that all have it. It excludes Ordered, which does so anyway.
	Return bool
	// MaxFanOut bounds the children of a host in trees; 0 means no bound.
	MaxFanOut int
	// Start is the ID of the host at which all regions of TwoPhase begin.
	// If nil, each begins at a host drawn by group and originator.
	Start *int32
	// ID gives each end port an ID of its own, 0 or more; nil means the base
	// LID. On banyan networks IDs are always the addresses of processors.
	ID func(fabric.PortID) int32
}

// Build compiles schedules for groups; members are the receivers and
// senders of a group, CA ports. Groups of fewer than two members have
// no sends. Trees take the paths of the unicast tables for their cost
// (M19): the parent of a member is the member with a lower ID from
// which it is the fewest links away, of equal ones the lowest. That
// makes the sum of links the least under the rule that children have
// higher IDs, since the choices are independent; with MaxFanOut they
// are not, and are made in ascending order of IDs. Children are
// served in ascending order. Trees of n members take n*n/2 paths.
//
// On a banyan network, hosts are the processors: a group may name either port of one.
//
// Errors: options that do not fit together, members that are
// no CA port or have no LID, IDs that two ports share, tables
// that lack a path, a Start without enough hosts after it; an
// *lft.DomainError on banyan networks without wrap-around,
// whose processors cannot send on what they received.
func Build(f *fabric.Fabric, t *lft.Tables, groups []mft.Group, opt Options) (*Schedule, error) {
	if opt.Classes == 0 {
		opt.Classes = 2
	}
	switch {
	case opt.Classes < 0 || opt.Classes > 2:
		return nil, fmt.Errorf("%d classes of buffers: want 1 or 2, no method uses more", opt.Classes)
	case opt.Ordered && (opt.Method == TreeFlood || opt.Method == Repeated || opt.Method == TwoPhase):
		return nil, fmt.Errorf("messages of %s cannot be ordered: want method tree, doubling or circuit", opt.Method)
	case opt.Return && (opt.Ordered || opt.Method != Circuit):
		return nil, errors.New("messages return to the originator on a circuit that is not ordered only")
	case opt.MaxFanOut < 0 || opt.MaxFanOut > 0 && opt.Method != Tree && opt.Method != TreeFlood:
		return nil, errors.New("the fan-out, 1 or more, is that of trees")
	}
	if opt.ID == nil {
		opt.ID = func(p fabric.PortID) int32 { return int32(f.LID(p)) }
	}
	b := builder{f: f, t: t, opt: opt, s: &Schedule{Classes: opt.Classes}}
	var err error
	if b.net, err = processors(f); err != nil {
		return nil, err
	}
	if err := b.hosts(groups); err != nil {
		return nil, err
	}
	for i := range groups {
		if err := b.group(&groups[i]); err != nil {
			return nil, fmt.Errorf("group %q: %w", groups[i].Name, err)
		}
	}
	return b.s, nil
}

// processors returns the banyan network of f, nil if f is another fabric.
func processors(f *fabric.Fabric) (*banyan.Network, error) {
	w, err := banyan.Detect(f)
	if err != nil {
		return nil, nil
	}
	if !w.WrapAround() {
		return nil, &lft.DomainError{Engine: "schedule", Reason: "it is a banyan network without wrap-around, where no host can send on what it received"}
	}
	return w, nil
}

type builder struct {
	f     *fabric.Fabric
	net   *banyan.Network // nil for other fabrics
	t     *lft.Tables
	opt   Options
	s     *Schedule
	index map[fabric.PortID]int32 // of a host, by each of its ports
	ports []fabric.PortID         // by index: the one that receives
}

// addHost lists a port, and on a banyan network both ports of its processor.
func (b *builder) addHost(p fabric.PortID) error {
	if _, ok := b.index[p]; ok {
		return nil
	}
	if b.net != nil {
		a, _ := b.net.Address(p)
		if a < 0 {
			return fmt.Errorf("%s is no port of a processor", b.f.PortName(p))
		}
		b.index[b.net.Outputs[a]] = 0
		p = b.net.Inputs[a]
	}
	if b.f.LID(p) == 0 {
		return fmt.Errorf("%s has no LID", b.f.PortName(p))
	}
	b.index[p] = 0
	b.ports = append(b.ports, p)
	return nil
}

// hosts lists the members of groups by ID; for TwoPhase all hosts, as any may be in a region.
func (b *builder) hosts(groups []mft.Group) error {
	b.index = make(map[fabric.PortID]int32)
	if b.opt.Method == TwoPhase {
		for _, p := range b.f.CAPorts() {
			if b.f.LID(p) == 0 || b.f.Peer(p) == fabric.NoPort {
				continue
			}
			if err := b.addHost(p); err != nil {
				return err
			}
		}
	}
	for i := range groups {
		for _, list := range [2][]fabric.PortID{groups[i].Receivers, groups[i].Senders} {
			for _, p := range list {
				if b.f.IsSwitch(b.f.Owner(p)) {
					return fmt.Errorf("group %q: %s is of a switch: want ports of channel adapters, which pass messages on", groups[i].Name, b.f.PortName(p))
				}
				if err := b.addHost(p); err != nil {
					return fmt.Errorf("group %q: %w", groups[i].Name, err)
				}
			}
		}
	}
	ids := make(map[fabric.PortID]int32, len(b.ports))
	for _, p := range b.ports {
		if b.net != nil {
			a, _ := b.net.Address(p)
			ids[p] = int32(a)
		} else {
			ids[p] = b.opt.ID(p)
		}
	}
	slices.SortFunc(b.ports, func(p, q fabric.PortID) int { return cmp.Compare(ids[p], ids[q]) })
	b.s.Hosts = make([]Host, len(b.ports))
	for i, p := range b.ports {
		out := p
		if b.net != nil {
			out = b.net.Outputs[ids[p]]
		}
		b.index[p], b.index[out] = int32(i), int32(i)
		b.s.Hosts[i] = Host{ID: ids[p], Port: b.f.PortGUID(p), LID: b.f.LID(p), Out: b.f.PortGUID(out)}
		if ids[p] < 0 {
			return fmt.Errorf("%s has the ID %d: want 0 or more", b.f.PortName(p), ids[p])
		}
		if i > 0 && ids[p] == ids[b.ports[i-1]] {
			return fmt.Errorf("%s and %s have the ID %d both", b.f.PortName(b.ports[i-1]), b.f.PortName(p), ids[p])
		}
	}
	return nil
}

// members turns ports into indices of hosts, ascending.
func (b *builder) members(lists ...[]fabric.PortID) []int32 {
	var m []int32
	for _, list := range lists {
		for _, p := range list {
			m = append(m, b.index[p])
		}
	}
	slices.Sort(m)
	return slices.Compact(m)
}

func (b *builder) group(in *mft.Group) error {
	g := Group{Name: in.Name, Method: b.opt.Method, Members: b.members(in.Receivers, in.Senders), Senders: b.members(in.Senders)}
	if len(in.Senders) == 0 {
		g.Senders = g.Members
	}
	if len(g.Members) > 1 {
		switch g.Method {
		case Circuit:
			b.circuit(&g)
		case Repeated:
			repeat(&g)
		case Doubling:
			b.double(&g)
		case TwoPhase:
			if err := b.twoPhase(&g); err != nil {
				return err
			}
		default:
			if err := b.tree(&g); err != nil {
				return err
			}
		}
	}
	slices.SortStableFunc(g.Sends, compareSends)
	g.Sends = slices.Compact(g.Sends)
	b.s.Groups = append(b.s.Groups, g)
	return nil
}

func compareSends(a, b Send) int {
	return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.Held, b.Held), cmp.Compare(a.From, b.From))
}

func (b *builder) second() Class { return Class(b.opt.Classes) }

func (b *builder) circuit(g *Group) {
	m := g.Members
	n := len(m)
	if b.opt.Ordered {
		for _, o := range g.Senders {
			if o != m[0] {
				g.Sends = append(g.Sends, Send{At: o, Held: SendBuffer, From: Anyone, To: m[0], Class: 1})
			}
		}
		for i := range n - 1 {
			g.Sends = append(g.Sends, Send{At: m[i], Held: 1, From: Anyone, To: m[i+1], Class: 1})
		}
		if slices.Contains(g.Senders, m[0]) {
			g.Sends = append(g.Sends, Send{At: m[0], Held: SendBuffer, From: Anyone, To: m[1], Class: 1})
		}
		return
	}
	g.Hops = n - 1
	if b.opt.Return {
		g.Hops = n
	}
	for _, o := range g.Senders {
		at, _ := slices.BinarySearch(m, o)
		held := SendBuffer
		class := Class(1)
		for range g.Hops {
			next := (at + 1) % n
			if next == 0 {
				class = b.second()
			}
			g.Sends = append(g.Sends, Send{At: m[at], Held: held, From: Anyone, To: m[next], Class: class})
			held, at = class, next
		}
		if len(g.Sends) > 4*n { // many duplicates
			slices.SortFunc(g.Sends, func(a, b Send) int {
				return cmp.Or(compareSends(a, b), cmp.Compare(a.To, b.To), cmp.Compare(a.Class, b.Class))
			})
			g.Sends = slices.Compact(g.Sends)
		}
	}
	slices.SortFunc(g.Sends, func(a, b Send) int {
		return cmp.Or(compareSends(a, b), cmp.Compare(a.To, b.To), cmp.Compare(a.Class, b.Class))
	})
}

// repeat makes each sender send to all others, from the next higher ID on.
func repeat(g *Group) {
	for i, o := range g.Members {
		if _, ok := slices.BinarySearch(g.Senders, o); !ok {
			continue
		}
		for k := 1; k < len(g.Members); k++ {
			g.Sends = append(g.Sends, Send{At: o, Held: SendBuffer, From: Anyone, To: g.Members[(i+k)%len(g.Members)], Class: 1})
		}
	}
}

// double makes the schedule of recursive doubling. Classes are those of
// a circuit: members with lower IDs than the root have the second class.
func (b *builder) double(g *Group) {
	root := 0
	if len(g.Senders) == 1 {
		root, _ = slices.BinarySearch(g.Members, g.Senders[0])
	}
	m := slices.Concat(g.Members[root:], g.Members[:root])
	classOf := func(i int) Class {
		if m[i] < m[0] {
			return b.second()
		}
		return 1
	}
	// Member lo serves those before hi: it sends to the first of
	// their upper half, which serves that half, and so on.
	var serve func(lo, hi int, held Class)
	serve = func(lo, hi int, held Class) {
		for hi-lo > 1 {
			mid := (lo + hi + 1) / 2
			g.Sends = append(g.Sends, Send{At: m[lo], Held: held, From: Anyone, To: m[mid], Class: classOf(mid)})
			serve(mid, hi, classOf(mid))
			hi = mid
		}
	}
	serve(0, len(m), 1)
	down := g.Sends
	for _, o := range g.Senders {
		if o != m[0] {
			g.Sends = append(g.Sends, Send{At: o, Held: SendBuffer, From: Anyone, To: m[0], Class: 1})
			continue
		}
		for _, s := range down {
			if s.At == o {
				s.Held = SendBuffer
				g.Sends = append(g.Sends, s)
			}
		}
	}
}

// twoPhase makes each originator send to a region of its own.
func (b *builder) twoPhase(g *Group) error {
	for _, o := range g.Senders {
		to := slices.DeleteFunc(slices.Clone(g.Members), func(m int32) bool { return m == o })
		n := int32(len(to))
		if last := to[n-1]; last-to[0] < n || b.net == nil && last-to[0] == n && to[0] < o && o < last {
			g.Sends = append(g.Sends, Send{At: o, Held: SendBuffer, From: Anyone, To: to[0], More: last - to[0], Class: 1})
			continue
		}
		// Hosts at which a region can begin.
		count := int32(len(b.s.Hosts)) - n + 1
		rng := rand.New(rand.NewPCG(uint64(b.s.Hosts[o].ID), uint64(len(b.s.Groups))))
		first := rng.Int32N(count)
		if b.opt.Start != nil {
			first = int32(slices.IndexFunc(b.s.Hosts, func(h Host) bool { return h.ID == *b.opt.Start }))
			if first < 0 || first >= count {
				return fmt.Errorf("no %d hosts in a row from host %d on: want a start from %d to %d", n, *b.opt.Start, b.s.Hosts[0].ID, b.s.Hosts[count-1].ID)
			}
		}
		g.Sends = append(g.Sends, Send{At: o, Held: SendBuffer, From: Anyone, To: first, More: n - 1, Class: 1})
		for i, m := range to {
			switch at := first + int32(i); {
			case b.net == nil && at == m: // the member has its copy
			case b.net == nil && at == o:
				g.Sends = append(g.Sends, Send{At: o, Held: SendBuffer, From: Anyone, To: m, Class: b.second()})
			default:
				g.Sends = append(g.Sends, Send{At: at, Held: 1, From: o, To: m, Class: b.second()})
			}
		}
	}
	return nil
}

// parents returns the rooted tree of members m, indices of hosts: the
// parent of each, by position in m; Anyone for the first, the root.
func (b *builder) parents(m []int32) ([]int32, error) {
	parent := make([]int32, len(m))
	parent[0] = Anyone
	children := make([]int, len(m))
	for i := 1; i < len(m); i++ {
		best := -1
		bestLinks := 0
		for j := range i {
			if b.opt.MaxFanOut > 0 && children[j] == b.opt.MaxFanOut {
				continue
			}
			links, err := Links(b.f, b.t, b.ports[m[j]], b.s.Hosts[m[i]].LID)
			if err != nil {
				return nil, err
			}
			if best < 0 || links < bestLinks {
				best, bestLinks = j, links
			}
		}
		children[best]++
		parent[i] = int32(best)
	}
	return parent, nil
}

// rootedTree is the tree of the members of a group. Members
// are numbered by their position in the group's list.
type rootedTree struct {
	b        *builder
	g        *Group
	parent   []int32
	children [][]int32
	sends    []bool // by member: it originates messages
	below    []int  // by member: senders at and below it
}

func (b *builder) tree(g *Group) error {
	n := len(g.Members)
	parent, err := b.parents(g.Members)
	if err != nil {
		return err
	}
	t := &rootedTree{b: b, g: g, parent: parent, children: make([][]int32, n), sends: make([]bool, n), below: make([]int, n)}
	for _, o := range g.Senders {
		i, _ := slices.BinarySearch(g.Members, o)
		t.sends[i] = true
		t.below[i] = 1
	}
	for i := n - 1; i > 0; i-- {
		t.below[parent[i]] += t.below[i]
	}
	for i := 1; i < n; i++ {
		t.children[parent[i]] = append(t.children[parent[i]], int32(i))
	}
	for i := range n {
		if g.Method == Tree {
			t.addOrdered(i)
		} else {
			t.addFlood(i)
		}
	}
	return nil
}

// add makes one member, at, send to another, to, the messages that came from member from.
func (t *rootedTree) add(at int, held Class, from, to int32, class Class) {
	m := t.g.Members
	if from != Anyone {
		from = m[from]
	}
	t.g.Sends = append(t.g.Sends, Send{At: m[at], Held: held, From: from, To: m[to], Class: class})
}

// addOrdered adds the sends of member i of a tree on which messages start at the root.
func (t *rootedTree) addOrdered(i int) {
	for _, c := range t.children[i] {
		t.add(i, 1, Anyone, c, 1)
		if i == 0 && t.sends[0] {
			t.add(0, SendBuffer, Anyone, c, 1)
		}
	}
	if i > 0 && t.sends[i] {
		t.add(i, SendBuffer, Anyone, 0, 1)
	}
}

// addFlood adds the sends of member i of a flooded tree: messages go up in the first class,
// and each member on the way sends them down to its other children in the second.
func (t *rootedTree) addFlood(i int) {
	second := t.b.second()
	if t.sends[i] {
		if i > 0 {
			t.add(i, SendBuffer, Anyone, t.parent[i], 1)
		}
		for _, c := range t.children[i] {
			t.add(i, SendBuffer, Anyone, c, second)
		}
	}
	for _, from := range t.children[i] {
		if t.below[from] == 0 {
			continue
		}
		if i > 0 {
			t.add(i, 1, from, t.parent[i], 1)
		}
		for _, c := range t.children[i] {
			if c != from {
				t.add(i, 1, from, c, second)
			}
		}
	}
	if i > 0 && t.below[i] < t.below[0] { // there are senders elsewhere
		for _, c := range t.children[i] {
			t.add(i, second, t.parent[i], c, second)
		}
	}
}
