package move

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/lft"
)

// Job is the recabling to plan.
type Job struct {
	// Nodes has all nodes of the fabrics before and after, without cables, and
	// with the LIDs that they have when they are cabled. Old and New are the
	// cables before and after.
	Nodes    *fabric.Fabric
	Old, New []fabric.Cable
	before   *fabric.Fabric
	// Steps is the order of the work; nil leaves it to Make.
	Steps []Batch
}

// Batch has cables to unplug, and cables to plug in after that.
type Batch struct{ Unplug, Plug []fabric.Cable }

// builder collects the nodes of a job.
type builder struct {
	fabric.Builder
	taken map[fabric.GUID]bool
}

// newBuilder begins with the nodes of old.
func newBuilder(old *fabric.Fabric) (*builder, error) {
	b := &builder{taken: make(map[fabric.GUID]bool)}
	for _, n := range old.Nodes() {
		if err := b.add(old, n); err != nil {
			return nil, err
		}
	}
	return b, nil
}

func (b *builder) add(f *fabric.Fabric, n fabric.NodeID) error {
	b.taken[f.Node(n).GUID] = true
	for num := range f.Node(n).NumPorts + 1 {
		b.taken[f.PortGUID(f.Port(n, num))] = true
	}
	delete(b.taken, 0)
	_, err := b.CopyNode(f, n)
	return err
}

// isTaken returns true if another node has the GUID of n or of one of its ports.
func (b *builder) isTaken(f *fabric.Fabric, n fabric.NodeID) bool {
	taken := b.taken[f.Node(n).GUID]
	for num := range f.Node(n).NumPorts + 1 {
		taken = taken || b.taken[f.PortGUID(f.Port(n, num))]
	}
	return taken
}

// freshGUID returns a free GUID above last; as many GUIDs after it as there are ports are free too.
func (b *builder) freshGUID(last fabric.GUID, ports fabric.PortNum) fabric.GUID {
	for g := last + 1; ; g++ {
		free := true
		for p := range fabric.GUID(ports) + 1 {
			free = free && !b.taken[g+p]
		}
		if free {
			return g
		}
	}
}

// addNew adds a node whose ports have the GUIDs after its own.
func (b *builder) addNew(node fabric.Node) error {
	for num := range fabric.GUID(node.NumPorts) + 1 {
		b.taken[node.GUID+num] = true
	}
	_, err := b.AddNode(node)
	return err
}

// finish makes the job, with the cables of old but without New. Nodes that come have the kinds and
// names of other; guids has the GUIDs of other's nodes in the job. Both may be nil.
func (b *builder) finish(old, other *fabric.Fabric, guids []fabric.GUID) (*Job, error) {
	u, err := b.Build()
	if err != nil {
		return nil, err
	}
	j := &Job{Nodes: u, before: old}
	given := make(map[fabric.GUID]string)
	if other != nil {
		j.dress(other, guids, given)
	}
	j.dress(old, guidsOf(old), given)
	j.Nodes = j.Nodes.WithNames(given)
	j.Old = j.cablesOf(old, guidsOf(old))
	return j, nil
}

func guidsOf(f *fabric.Fabric) []fabric.GUID {
	return text.Each(f.Nodes(), func(n fabric.NodeID) fabric.GUID { return f.Node(n).GUID })
}

// port returns the job's port for port p of f. guids has the GUIDs of f's nodes in the job.
func (j *Job) port(f *fabric.Fabric, guids []fabric.GUID, p fabric.PortID) fabric.PortID {
	n, _ := j.Nodes.NodeByGUID(guids[f.Owner(p)])
	return j.Nodes.Port(n, f.Num(p))
}

// dress gives nodes of the job the kinds that they have in f, and adds their names in f to given.
// guids has the GUIDs of f's nodes in the job.
func (j *Job) dress(f *fabric.Fabric, guids []fabric.GUID, given map[fabric.GUID]string) {
	var rules []fabric.KindRule
	for n, guid := range guids {
		given[guid] = f.Name(fabric.NodeID(n)).Text
		if at, _ := j.Nodes.NodeByGUID(guid); f.Kind(fabric.NodeID(n)) != j.Nodes.Kind(at) {
			rules = append(rules, fabric.KindRule{Pattern: guid.String(), Kind: f.Kind(fabric.NodeID(n))})
		}
	}
	j.Nodes, _ = j.Nodes.WithKinds(rules)
}

// assignLIDs gives new nodes the lowest free LIDs, those that have a cable in an earlier one of
// states first; other nodes keep theirs.
func (j *Job) assignLIDs(states ...[]fabric.Cable) error {
	base, lmc := make([]fabric.LID, j.Nodes.NumPorts()), make([]uint8, j.Nodes.NumPorts())
	guids := guidsOf(j.before)
	for p := range fabric.PortID(j.before.NumPorts()) {
		at := j.port(j.before, guids, p)
		base[at], lmc[at] = j.before.LID(p), j.before.LMC(p)
	}
	for _, cables := range states {
		f, err := j.Nodes.WithCables(cables)
		if err == nil {
			f, err = f.WithLIDs(slices.Clone(base), slices.Clone(lmc))
		}
		if err == nil {
			f, err = lft.AssignLIDs(f, lft.LIDOptions{LMC: lft.KeepLMC})
		}
		if err != nil {
			return err
		}
		for p := range fabric.PortID(len(base)) {
			if base[p] == 0 {
				base[p], lmc[p] = f.LID(p), f.LMC(p)
			}
		}
	}
	var err error
	j.Nodes, err = j.Nodes.WithLIDs(base, lmc)
	return err
}

// Between returns the job that turns old into new. Nodes are matched by GUID
// or, if byName is set, by names, which must then be unique. Nodes of new keep
// the LIDs that they have in old. A cable with the same ends is the same
// cable, whatever its rate; one without a rate gets that of the fastest cable
// of either node. Errors: GUIDs or names that do not tell nodes apart, more
// ports in new than in old.
func Between(old, new *fabric.Fabric, byName bool) (*Job, error) {
	b, err := newBuilder(old)
	if err != nil {
		return nil, err
	}
	find, err := finder(old, new, byName)
	if err != nil {
		return nil, err
	}
	guids := make([]fabric.GUID, new.NumNodes()) // of new's nodes, in the job
	last := fabric.GUID(0)                       // the last one that was made up
	for n := range guids {
		node := *new.Node(fabric.NodeID(n))
		guids[n] = node.GUID
		switch was := find(fabric.NodeID(n)); {
		case was != fabric.NoNode:
			have := old.Node(was)
			guids[n] = have.GUID
			if have.Type != node.Type || have.NumPorts < node.NumPorts {
				err = fmt.Errorf("%s is a %s with %d ports now, and a %s with %d then", old.Name(was), have.Type, have.NumPorts, node.Type, node.NumPorts)
			}
		case b.isTaken(new, fabric.NodeID(n)):
			last = b.freshGUID(last, node.NumPorts)
			guids[n], node.GUID = last, last
			err = b.addNew(node)
		default:
			err = b.add(new, fabric.NodeID(n))
		}
		if err != nil {
			return nil, err
		}
	}
	j, err := b.finish(old, new, guids)
	if err != nil {
		return nil, err
	}
	j.New = j.cablesOf(new, guids)
	there := byPort(j.Old)
	for i := range j.New {
		if c := &j.New[i]; c.Link.Mbps() == 0 {
			c.Link = fastest(j.Nodes, there, *c)
		}
	}
	return j, j.assignLIDs(j.New)
}

// finder returns a function that finds nodes of new in old; NoNode for new ones.
func finder(old, new *fabric.Fabric, byName bool) (func(fabric.NodeID) fabric.NodeID, error) {
	known := make(map[string]fabric.NodeID)
	for _, n := range old.Nodes() {
		name := old.Name(n).Text
		if _, twice := known[name]; twice && byName {
			return nil, fmt.Errorf("several nodes are called %q; want names that tell nodes apart, or GUIDs", name)
		}
		known[name] = n
	}
	if byName {
		seen := make(map[string]bool)
		for n := range fabric.NodeID(new.NumNodes()) {
			name := new.Name(n).Text
			if seen[name] {
				return nil, fmt.Errorf("several nodes are called %q then; want names that tell nodes apart, or GUIDs", name)
			}
			seen[name] = true
		}
		return func(n fabric.NodeID) fabric.NodeID {
			if at, ok := known[new.Name(n).Text]; ok {
				return at
			}
			return fabric.NoNode
		}, nil
	}
	for _, n := range new.Nodes() {
		at, ok := old.NodeByGUID(new.Node(n).GUID)
		if !ok || old.Name(at).Text == new.Name(n).Text {
			continue
		}
		if other, ok := known[new.Name(n).Text]; ok && old.Node(other).GUID != new.Node(n).GUID && old.Name(other).GUID == 0 {
			return nil, fmt.Errorf("GUID %s is %s now and %s then, and both fabrics have nodes of both names; want GUIDs that agree, or --by name",
				new.Node(n).GUID, old.Name(at), new.Name(n))
		}
	}
	return func(n fabric.NodeID) fabric.NodeID {
		at, _ := old.NodeByGUID(new.Node(n).GUID)
		return at
	}, nil
}

// cablesOf lists the cables of f in the job. guids has the GUIDs of f's nodes there.
func (j *Job) cablesOf(f *fabric.Fabric, guids []fabric.GUID) []fabric.Cable {
	list := text.Each(f.Cables(), func(c fabric.Cable) fabric.Cable {
		return ordered(fabric.Cable{A: j.port(f, guids, c.A), B: j.port(f, guids, c.B), Link: c.Link})
	})
	slices.SortFunc(list, compareCables)
	return list
}

func compareCables(x, y fabric.Cable) int { return cmp.Compare(x.A, y.A) }

// ordered returns a cable whose first end is the one with the lower PortID.
func ordered(c fabric.Cable) fabric.Cable {
	return fabric.Cable{A: min(c.A, c.B), B: max(c.A, c.B), Link: c.Link}
}

func firstEnds(cables []fabric.Cable) []fabric.PortID {
	return text.Each(cables, func(c fabric.Cable) fabric.PortID { return c.A })
}

// missing lists the cables of f that g lacks, whatever their rates.
func missing(f, g *fabric.Fabric) []fabric.Cable {
	return slices.DeleteFunc(f.Cables(), func(c fabric.Cable) bool { return g.Peer(c.A) == c.B })
}

// without lists the cables of list that are not in other, whatever their rates.
func without(list, other []fabric.Cable) (rest []fabric.Cable) {
	at := byPort(other)
	return text.Where(list, func(c fabric.Cable) bool {
		has, ok := at[c.A]
		return !ok || has.A != c.A || has.B != c.B
	})
}

// byPort returns cables by both of their ends.
func byPort(cables []fabric.Cable) map[fabric.PortID]fabric.Cable {
	at := make(map[fabric.PortID]fabric.Cable, 2*len(cables))
	for _, c := range cables {
		at[c.A], at[c.B] = c, c
	}
	return at
}

// fastest returns the rate of the fastest of the cables in at, at the nodes that c joins.
func fastest(f *fabric.Fabric, at map[fabric.PortID]fabric.Cable, c fabric.Cable) (best fabric.Link) {
	for _, n := range [...]fabric.NodeID{f.Owner(c.A), f.Owner(c.B)} {
		for num := range f.Node(n).NumPorts {
			if c, ok := at[f.Port(n, num+1)]; ok && c.Link.Mbps() > best.Mbps() {
				best = c.Link
			}
		}
	}
	return best
}
