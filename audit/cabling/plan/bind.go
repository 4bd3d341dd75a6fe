package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/names"
)

// spot is a port that a plan names: of a node of the fabric, or of an invented node.
type spot struct {
	node fabric.NodeID // a NodeID of the fabric, or NumNodes + index of an invented node
	num  fabric.PortNum
}

// invented is a node that the plan names and the fabric lacks.
type invented struct {
	name  string
	typ   fabric.NodeType // 0 until guessTypes
	host  string
	ports map[fabric.PortNum]string // by number: its label, or ""
}

// bound is a cable of the plan with the ports that its ends name.
type bound struct {
	cable *Cable
	ends  [2]spot
}

// substitute is a cable in the right port of a switch, but to another adapter of the host than the
// plan names.
type substitute struct {
	cable  *Cable
	end    int           // of the cable, where the plan names an adapter
	actual fabric.PortID // of the adapter that is there instead
}

// binder finds the ports that the names of a plan mean.
type binder struct {
	f           *fabric.Fabric
	x           *index
	plan        *Plan
	bound       []bound
	invented    []invented
	byName      map[string]fabric.NodeID // invented nodes, by folded name
	mentioned   []bool                   // by NodeID of f
	placeholder map[string]bool          // by placeKey: the end is a placeholder
	unfilled    map[fabric.NodeID]bool   // invented nodes that are placeholders
	substitutes []substitute
	filled      int // placeholders where the fabric has some host
}

// bind finds the ports of all cables. It takes O(nodes + cables).
func (b *binder) bind() error {
	b.byName = map[string]fabric.NodeID{}
	b.unfilled = map[fabric.NodeID]bool{}
	b.mentioned = make([]bool, b.f.NumNodes())
	b.findPlaceholders()
	for i := range b.plan.Cables {
		c := &b.plan.Cables[i]
		x := bound{cable: c}
		var err error
		for end := range c.Ends {
			if x.ends[end], err = b.resolve(c.Ends[end]); err != nil {
				break
			}
		}
		if err == nil {
			err = b.number(&x)
		}
		if err != nil {
			if err := b.plan.skip(c.fail("%w", err)); err != nil {
				return err
			}
			continue
		}
		for _, s := range x.ends {
			if int(s.node) < b.f.NumNodes() {
				b.mentioned[s.node] = true
			}
		}
		b.bound = append(b.bound, x)
	}
	b.guessTypes()
	if err := b.agree(); err != nil {
		return err
	}
	for i := range b.bound {
		b.substitute(&b.bound[i])
	}
	return nil
}

// placeKey returns device and port of an end, without its place.
func placeKey(e End) string { return fold(e.Device) + "\x00" + fold(e.Port) }

// findPlaceholders marks ends that stand in several places, such as "Server 1
// IB Port 1" in every rack of ndth2s.csv of UFM's plugin for NDTs. They name
// no node: any host may be there.
func (b *binder) findPlaceholders() {
	at := map[string]string{}
	b.placeholder = map[string]bool{}
	for i := range b.plan.Cables {
		for _, e := range b.plan.Cables[i].Ends {
			if e.Place == "" {
				continue
			}
			key := placeKey(e)
			if first, ok := at[key]; ok && first != e.Place {
				b.placeholder[key] = true
			}
			at[key] = cmp.Or(at[key], e.Place)
		}
	}
}

// resolve finds the port that an end names. The number is 0 if the end names an adapter of several
// ports but no port of it.
func (b *binder) resolve(e End) (spot, error) {
	spec := parsePort(e.Port)
	if e.Place != "" && b.placeholder[placeKey(e)] {
		s, err := b.inventAdapter(fmt.Sprintf("%s, %s (%s)", e.Device, e.Port, e.Place), "", 1)
		b.unfilled[s.node] = true
		return s, err
	}
	if strings.HasPrefix(fold(e.Device), "0x") {
		if guid, err := fabric.ParseGUID(fold(e.Device)); err == nil {
			if n, ok := b.f.NodeByGUID(guid); ok {
				return b.onNode(n, e, spec)
			}
			return b.unknown(e, spec)
		}
	}
	if s, ok := b.adapter(e, spec); ok {
		return s, nil
	}
	if list := b.x.system.find(e.Device); len(list) > 0 {
		return b.onSystem(list, e, spec)
	}
	if list := b.x.whole.find(e.Device); len(list) > 0 {
		n, ok := b.x.one(list, e.Device)
		if !ok {
			return spot{}, fmt.Errorf("%q is the name of %d nodes; want a GUID, like %s, or names of their own by --node-name-map", e.Device, len(list), b.f.Node(list[0]).GUID)
		}
		return b.onNode(n, e, spec)
	}
	if list := b.x.host.find(e.Device); len(list) > 0 && spec.num > 0 && spec.unit == 0 {
		n, ok := b.x.one(list, e.Device)
		if !ok {
			return spot{}, fmt.Errorf("%q has %d adapters, and port %q does not say which; want %q", e.Device, len(list), e.Port, b.f.Name(list[0]).Text)
		}
		return b.onNode(n, e, spec)
	}
	return b.unknown(e, spec)
}

// adapter finds the channel adapter that the port's name contains: "HOST mlx5_0", "mlx5_0",
// "mlx5_0/1", "HOST mlx5_0 Port 1", or U2/P1 for HCA-2, as ibutils writes it.
func (b *binder) adapter(e End, spec portSpec) (spot, bool) {
	type try struct{ name, num string }
	var tries []try
	if spec.num == 0 && spec.label == "" {
		tries = append(tries, try{e.Device + " " + e.Port, ""}, try{e.Port, ""})
		if m := trailing.FindStringSubmatch(e.Port); m != nil {
			tries = append(tries, try{e.Device + " " + m[1], m[2]}, try{m[1], m[2]})
		}
	}
	if m := hostUnit.FindStringSubmatch(fold(e.Port)); m != nil {
		tries = append(tries, try{e.Device + " HCA-" + m[1], m[2]})
	}
	for _, t := range tries {
		n, ok := b.x.one(b.x.whole.find(t.name), t.name)
		num, err := strconv.ParseUint(t.num, 10, 8)
		switch {
		case !ok || b.f.IsSwitch(n):
		case t.num == "" && b.f.Node(n).NumPorts == 1:
			return spot{n, 1}, true
		case t.num == "":
			return spot{n, 0}, true
		case err == nil && num > 0 && num <= uint64(fabric.MaxPortNum):
			return spot{n, fabric.PortNum(num)}, true
		}
	}
	return spot{}, false
}

func (b *binder) onNode(n fabric.NodeID, e End, spec portSpec) (spot, error) {
	if b.f.IsSwitch(n) {
		return b.onSystem([]fabric.NodeID{n}, e, spec)
	}
	if s, ok := b.labelled([]fabric.NodeID{n}, spec); ok {
		return s, nil
	}
	if spec.num > 0 && spec.card == 0 && spec.unit <= 1 {
		return spot{n, fabric.PortNum(spec.num)}, nil
	}
	return spot{}, fmt.Errorf("%q is no port of %q; want one like %q", e.Port, e.Device, "Port 1")
}

// labelled finds the port whose printed label is the name in spec; false for none or several.
func (b *binder) labelled(nodes []fabric.NodeID, spec portSpec) (spot, bool) {
	if !b.f.Labelled() {
		return spot{}, false
	}
	if _, inSlot, _ := strings.Cut(spec.label, "/"); spec.slot1 {
		if s, ok := b.labelled(nodes, portSpec{text: inSlot}); ok {
			return s, true
		}
	}
	want := cmp.Or(spec.label, strings.TrimPrefix(fold(spec.text), "port "))
	found, ok := spot{}, false
	for _, n := range nodes {
		for num := fabric.PortNum(1); num <= b.f.Node(n).NumPorts && num != 0; num++ {
			if fold(b.f.Label(b.f.Port(n, num))) == want {
				if ok {
					return spot{}, false
				}
				found, ok = spot{n, num}, true
			}
		}
	}
	return found, ok
}

// onSystem finds a port of a switch, or of one of the chips of a system.
func (b *binder) onSystem(list []fabric.NodeID, e End, spec portSpec) (spot, error) {
	if s, ok := b.labelled(list, spec); ok {
		return s, nil
	}
	if spec.card != 0 || spec.unit != 0 {
		list = slices.DeleteFunc(slices.Clone(list), func(n fabric.NodeID) bool {
			p := b.x.parts[n]
			return p.Card != spec.card || p.Slot != spec.slot || p.Unit != spec.unit && spec.unit != 0 && (p.Unit != 0 || spec.unit != 1)
		})
		if len(list) == 0 {
			return b.unknown(e, spec)
		}
	}
	num := cmp.Or(spec.num, cageNumber(spec.label))
	if num == 0 {
		return spot{}, fmt.Errorf("%q is no port of the switch %q; want one like %s", e.Port, e.Device, portHelp)
	}
	if n, ok := b.x.one(list, e.Device); ok {
		return spot{n, fabric.PortNum(num)}, nil
	}
	seen := map[names.Chip]bool{} // places of chips in their system
	for _, n := range list {
		seen[b.x.parts[n]] = true
	}
	if first := b.x.parts[list[0]]; first.Unit != 0 && len(seen) == len(list) {
		return spot{}, fmt.Errorf("port %q of %q does not say which of %d chips; want one like %q", e.Port, e.Device, len(list), chipPort(first, num))
	}
	return spot{}, fmt.Errorf("%q is the name of %d switches; want a GUID, like %s, or names of their own by --node-name-map",
		e.Device, len(list), b.f.Node(list[0]).GUID)
}

// chipPort writes the name of a port of a chip as UFM does.
func chipPort(p names.Chip, num int) string {
	switch p.Card {
	case 'L':
		return fmt.Sprintf("Blade %02d_Port %d/%d", p.Slot, max(1, p.Unit), num)
	case 'S':
		return fmt.Sprintf("S%d/U%d/%d", p.Slot, p.Unit, num)
	}
	return fmt.Sprintf("U%d/%d", p.Unit, num)
}

// unknown returns a port of an invented node, for a device that the fabric lacks.
func (b *binder) unknown(e End, spec portSpec) (spot, error) {
	switch {
	case spec.card != 0 || spec.unit != 0:
		name := e.Device
		if spec.card != 0 {
			name += fmt.Sprintf("/%c%d", spec.card, spec.slot)
		}
		n := b.invent(name+fmt.Sprintf("/U%d", max(1, spec.unit)), fabric.Switch)
		return b.inventPort(n, spec.num, "")
	case spec.label != "":
		return b.inventPort(b.invent(e.Device, fabric.Switch), cageNumber(spec.label), spec.label)
	case spec.num > 0:
		return b.inventPort(b.invent(e.Device, 0), spec.num, "")
	}
	base, num := e.Port, 1
	if m := trailing.FindStringSubmatch(e.Port); m != nil {
		base = m[1]
		num, _ = strconv.Atoi(m[2])
	}
	if !strings.HasPrefix(fold(base), fold(e.Device)) {
		base = e.Device + " " + base
	}
	return b.inventAdapter(base, e.Device, num)
}

func (b *binder) node(n fabric.NodeID) *invented { return &b.invented[int(n)-b.f.NumNodes()] }

// invent returns the invented node of a name; the first call for the name adds it.
func (b *binder) invent(name string, typ fabric.NodeType) fabric.NodeID {
	key := fold(name)
	if n, ok := b.byName[key]; ok {
		return n
	}
	n := fabric.NodeID(b.f.NumNodes() + len(b.invented))
	b.invented = append(b.invented, invented{name: name, typ: typ, ports: map[fabric.PortNum]string{}})
	b.byName[key] = n
	return n
}

func (b *binder) inventAdapter(name, host string, num int) (spot, error) {
	n := b.invent(name, fabric.CA)
	b.node(n).host = host
	return b.inventPort(n, num, "")
}

// inventPort returns a port of an invented node: with a label, the port that has it, else the first
// port from num on without a label; without a label, port num.
func (b *binder) inventPort(n fabric.NodeID, num int, label string) (spot, error) {
	x := b.node(n)
	if label != "" {
		for p, known := range x.ports {
			if known == label {
				return spot{n, p}, nil
			}
		}
		for num == 0 || x.ports[fabric.PortNum(num)] != "" {
			if num++; num > int(fabric.MaxPortNum) {
				return spot{}, fmt.Errorf("%q has more than %d ports", x.name, fabric.MaxPortNum)
			}
		}
	}
	if num < 1 || num > int(fabric.MaxPortNum) {
		return spot{}, fmt.Errorf("port %d of %q; want 1 to %d", num, x.name, fabric.MaxPortNum)
	}
	x.ports[fabric.PortNum(num)] = cmp.Or(x.ports[fabric.PortNum(num)], label)
	return spot{n, fabric.PortNum(num)}, nil
}

// number sets the port number where an end names an adapter without one: the
// port that the cable is in, else the adapter's only port with a cable.
// Otherwise it returns an error.
func (b *binder) number(x *bound) error {
	for i := range x.ends {
		s, other := &x.ends[i], x.ends[1-i]
		if s.num != 0 {
			continue
		}
		if p := b.port(other); p != fabric.NoPort {
			if peer := b.f.Peer(p); peer != fabric.NoPort && b.f.Owner(peer) == s.node {
				s.num = b.f.Num(peer)
				continue
			}
		}
		cabled := 0
		for p := range b.f.Cabled(s.node) {
			s.num = b.f.Num(p)
			cabled++
		}
		if cabled != 1 {
			e := x.cable.Ends[i]
			return fmt.Errorf("%q has %d ports, and %q does not say which; want %q", b.f.Name(s.node).Text, b.f.Node(s.node).NumPorts, e.Port, e.Port+" Port 1")
		}
	}
	return nil
}

// port returns the fabric's port at a spot; NoPort if the fabric has none.
func (b *binder) port(s spot) fabric.PortID {
	if int(s.node) >= b.f.NumNodes() || s.num == 0 || s.num > b.f.Node(s.node).NumPorts {
		return fabric.NoPort
	}
	return b.f.Port(s.node, s.num)
}

func (b *binder) isSwitch(n fabric.NodeID) bool {
	if int(n) < b.f.NumNodes() {
		return b.f.IsSwitch(n)
	}
	return b.node(n).typ == fabric.Switch
}

// guessTypes sets unknown types of invented nodes: a switch has a port above 2, or a cable to a
// node that is no switch; others are adapters.
func (b *binder) guessTypes() {
	types := make(map[fabric.NodeID]fabric.NodeType)
	for i := range b.bound {
		for end, s := range b.bound[i].ends {
			if s.num > 2 || !b.isSwitch(b.bound[i].ends[1-end].node) {
				types[s.node] = fabric.Switch
			}
		}
	}
	for i := range b.invented {
		x := &b.invented[i]
		x.typ = cmp.Or(x.typ, types[fabric.NodeID(b.f.NumNodes()+i)], fabric.CA)
	}
}

// substitute replaces each end of x that is an invented adapter by the adapter
// at the other end's port. For a placeholder any will do, else one of the same
// host, as in UFM's expected_report.json. The plan must not name it elsewhere.
func (b *binder) substitute(x *bound) {
	for i, s := range x.ends {
		p := b.port(x.ends[1-i])
		if int(s.node) < b.f.NumNodes() || p == fabric.NoPort || b.node(s.node).typ != fabric.CA {
			continue
		}
		peer := b.f.Peer(p)
		if peer == fabric.NoPort {
			continue
		}
		n := b.f.Owner(peer)
		if b.f.IsSwitch(n) || b.mentioned[n] || b.f.Kind(n) == fabric.AggregationKind {
			continue
		}
		host, _, ok := names.HostOf(b.f.Name(n).Text)
		switch {
		case b.unfilled[s.node]:
			b.filled++
		case ok && fold(host) == fold(b.node(s.node).host):
			b.substitutes = append(b.substitutes, substitute{x.cable, i, peer})
		default:
			continue
		}
		b.mentioned[n] = true
		x.ends[i] = spot{n, b.f.Num(peer)}
	}
}

// agree merges cables that are listed twice. A second, different cable for a port is an error, or
// skipped if the plan is lenient.
func (b *binder) agree() error {
	at := make(map[spot]*Cable, 2*len(b.bound))
	kept := b.bound[:0]
	for _, x := range b.bound {
		first, other := at[x.ends[0]], at[x.ends[1]]
		var err error
		switch {
		case x.ends[0] == x.ends[1]:
			err = b.plan.skip(x.cable.fail("a cable from %s to itself", x.cable.Ends[0]))
		case first == nil && other == nil:
			at[x.ends[0]], at[x.ends[1]] = x.cable, x.cable
			kept = append(kept, x)
		case first != other:
			end := 0
			if first == nil {
				end, first = 1, other
			}
			err = b.plan.skip(x.cable.fail("%s has a cable already, to the other end of %q (%s:%d); want one cable for a port", x.cable.Ends[end], first, first.File, first.Line))
		}
		if err != nil {
			return err
		}
	}
	b.bound = kept
	return nil
}
