package move

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/lft"
)

// Job is what is to be recabled.
type Job struct {
	// Nodes is all nodes before and after without a cable, with the LIDs that they have when they
	// are cabled. Old and New are its cables then.
	Nodes    *fabric.Fabric
	Old, New []fabric.Cable
	// Steps is the order of the work; nil leaves it to Make.
	Steps []Batch
}

// Batch is cables that are unplugged, and those that are plugged in when these are out.
type Batch struct{ Unplug, Plug []fabric.Cable }

// builder collects the nodes of a job.
type builder struct {
	fabric.Builder
	old   *fabric.Fabric
	added []fabric.NodeID // by NodeID of the old fabric, then nodes that come: NodeID of the job
	taken map[fabric.GUID]bool
}

// newBuilder begins with the nodes of old, whose numbers in it they keep.
func newBuilder(old *fabric.Fabric) (*builder, error) {
	b := &builder{old: old, taken: make(map[fabric.GUID]bool)}
	for n := range fabric.NodeID(old.NumNodes()) {
		if _, err := b.add(old, n, *old.Node(n)); err != nil {
			return nil, err
		}
	}
	return b, nil
}

// add adds node, which is n of f but for its GUID.
func (b *builder) add(f *fabric.Fabric, n fabric.NodeID, node fabric.Node) (int, error) {
	at, err := b.AddNode(node)
	if err != nil {
		return 0, err
	}
	b.taken[node.GUID] = true
	for num := range node.NumPorts + 1 {
		p := f.Port(n, num)
		guid := f.PortGUID(p)
		if guid != 0 && node.GUID != f.Node(n).GUID {
			guid = node.GUID + fabric.GUID(num)
		}
		if guid != 0 {
			b.taken[guid] = true
			if err := b.SetPort(at, num, guid, 0, 0); err != nil {
				return 0, err
			}
		}
		if label := f.Label(p); label != "" {
			if err := b.SetLabel(at, num, label); err != nil {
				return 0, err
			}
		}
	}
	return at, nil
}

// isTaken says whether another node has a GUID of n or of its ports.
func (b *builder) isTaken(f *fabric.Fabric, n fabric.NodeID) bool {
	taken := b.taken[f.Node(n).GUID]
	for num := range f.Node(n).NumPorts + 1 {
		taken = taken || b.taken[f.PortGUID(f.Port(n, num))]
	}
	return taken
}

// freshGUID is a GUID for a node with so many ports that nothing else has.
func (b *builder) freshGUID(ports fabric.PortNum) fabric.GUID {
	for g := fabric.GUID(1); ; g += fabric.GUID(ports) + 1 {
		free := true
		for p := range fabric.GUID(ports) + 1 {
			free = free && !b.taken[g+p]
		}
		if free {
			return g
		}
	}
}

// finish makes the job, without its cables.
func (b *builder) finish() (*Job, error) {
	u, err := b.Build()
	if err != nil {
		return nil, err
	}
	b.added = make([]fabric.NodeID, u.NumNodes())
	for n := range fabric.NodeID(u.NumNodes()) {
		b.added[u.Node(n).Order] = n
	}
	return &Job{Nodes: u}, nil
}

// dress gives nodes the kinds that they have in f, where of finds its nodes, and lists their names.
func (j *Job) dress(f *fabric.Fabric, of func(fabric.NodeID) fabric.NodeID, given map[fabric.GUID]string) {
	var rules []fabric.KindRule
	for n := range fabric.NodeID(f.NumNodes()) {
		at := of(n)
		guid := j.Nodes.Node(at).GUID
		given[guid] = f.Name(n).Text
		if f.Kind(n) != j.Nodes.Kind(at) {
			rules = append(rules, fabric.KindRule{Pattern: guid.String(), Kind: f.Kind(n)})
		}
	}
	j.Nodes, _ = j.Nodes.WithKinds(rules)
}

// assignLIDs gives nodes that come the lowest LIDs that are free; the others keep theirs.
func (j *Job) assignLIDs(old *fabric.Fabric, of func(fabric.PortID) fabric.PortID) error {
	base, lmc := make([]fabric.LID, j.Nodes.NumPorts()), make([]uint8, j.Nodes.NumPorts())
	for p := range fabric.PortID(old.NumPorts()) {
		base[of(p)], lmc[of(p)] = old.LID(p), old.LMC(p)
	}
	after, err := j.Nodes.WithCables(j.New)
	if err == nil {
		after, err = after.WithLIDs(slices.Clone(base), slices.Clone(lmc))
	}
	if err == nil {
		after, err = lft.AssignLIDs(after, lft.LIDOptions{LMC: lft.KeepLMC})
	}
	if err != nil {
		return err
	}
	for p := range fabric.PortID(len(base)) {
		if base[p] == 0 {
			base[p], lmc[p] = after.LID(p), after.LMC(p)
		}
	}
	j.Nodes, err = j.Nodes.WithLIDs(base, lmc)
	return err
}

// Between is the job that makes new of old. Nodes are the same by their GUIDs, or by their names, which
// have to be theirs alone then. Nodes of new keep the LIDs that they have in old, and a cable whose
// ends stay is the same cable, whatever its rate. Errors: a GUID that another node has in new, nodes
// of the same name, more ports in new than in old.
func Between(old, new *fabric.Fabric, byName bool) (*Job, error) {
	b, err := newBuilder(old)
	if err != nil {
		return nil, err
	}
	find, err := finder(old, new, byName)
	if err != nil {
		return nil, err
	}
	at := make([]int, new.NumNodes()) // in the builder
	for n := range at {
		node := *new.Node(fabric.NodeID(n))
		was := find(fabric.NodeID(n))
		if was != fabric.NoNode {
			at[n] = int(was)
			if have := old.Node(was); have.Type != node.Type || have.NumPorts < node.NumPorts {
				return nil, fmt.Errorf("%s is a %s with %d ports now, and a %s with %d then", old.Name(was), have.Type, have.NumPorts, node.Type, node.NumPorts)
			}
			continue
		}
		if b.isTaken(new, fabric.NodeID(n)) {
			node.GUID = b.freshGUID(node.NumPorts)
		}
		if at[n], err = b.add(new, fabric.NodeID(n), node); err != nil {
			return nil, err
		}
	}
	j, err := b.finish()
	if err != nil {
		return nil, err
	}
	given := make(map[fabric.GUID]string)
	j.dress(new, func(n fabric.NodeID) fabric.NodeID { return b.added[at[n]] }, given)
	j.dress(old, func(n fabric.NodeID) fabric.NodeID { return b.added[n] }, given)
	j.Nodes = j.Nodes.WithNames(given)
	ofOld := func(p fabric.PortID) fabric.PortID { return j.Nodes.Port(b.added[old.Owner(p)], old.Num(p)) }
	j.Old = cablesOf(old, ofOld)
	j.New = cablesOf(new, func(p fabric.PortID) fabric.PortID {
		return j.Nodes.Port(b.added[at[new.Owner(p)]], new.Num(p))
	})
	return j, j.assignLIDs(old, ofOld)
}

// finder finds nodes of new in old, NoNode for those that come.
func finder(old, new *fabric.Fabric, byName bool) (func(fabric.NodeID) fabric.NodeID, error) {
	known := make(map[string]fabric.NodeID)
	for n := range fabric.NodeID(old.NumNodes()) {
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
	for n := range fabric.NodeID(new.NumNodes()) {
		at, ok := old.NodeByGUID(new.Node(n).GUID)
		if !ok || old.Name(at).Text == new.Name(n).Text {
			continue
		}
		if other, ok := known[new.Name(n).Text]; ok && old.Node(other).GUID != new.Node(n).GUID && old.Name(other).GUID == 0 {
			return nil, fmt.Errorf("GUID %s is %s now and %s then, and both fabrics have nodes of both names; want GUIDs that agree, or --by name", new.Node(n).GUID, old.Name(at), new.Name(n))
		}
	}
	return func(n fabric.NodeID) fabric.NodeID {
		at, _ := old.NodeByGUID(new.Node(n).GUID)
		return at
	}, nil
}

// cablesOf lists the cables of a fabric between the ports of a job.
func cablesOf(f *fabric.Fabric, of func(fabric.PortID) fabric.PortID) []fabric.Cable {
	list := f.Cables()
	for i := range list {
		list[i] = ordered(fabric.Cable{A: of(list[i].A), B: of(list[i].B), Link: list[i].Link})
	}
	slices.SortFunc(list, func(x, y fabric.Cable) int { return cmp.Compare(x.A, y.A) })
	return list
}

// ordered is a cable from its end with the lower number.
func ordered(c fabric.Cable) fabric.Cable {
	return fabric.Cable{A: min(c.A, c.B), B: max(c.A, c.B), Link: c.Link}
}

// ends is a cable without its rate.
type ends [2]fabric.PortID

func endsOf(c fabric.Cable) ends { return ends{c.A, c.B} }

// without lists the cables of a list that another one has not, whatever their rates.
func without(list, other []fabric.Cable) (rest []fabric.Cable) {
	has := make(map[ends]bool, len(other))
	for _, c := range other {
		has[endsOf(c)] = true
	}
	for _, c := range list {
		if !has[endsOf(c)] {
			rest = append(rest, c)
		}
	}
	return rest
}
