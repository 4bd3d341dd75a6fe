package plan

import (
	"fmt"

	"github.com/ibweave/ibweave/audit/cabling"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/verify"
)

// Expected is the fabric that a plan describes.
type Expected struct {
	// Fabric has the nodes that the plan names, with the GUIDs of the real
	// fabric, and its cables. Cables that the plan does not judge are as in
	// the real fabric: those between chips of a chassis, those to aggregation
	// nodes, and kinds that the plan lacks (see Unjudged).
	Fabric *fabric.Fabric
	// Invented has the GUIDs of nodes that only the plan has. No device has them.
	Invented map[fabric.GUID]bool
	// Problems are rows of the plan that were left out.
	Problems []*fabric.ParseError
	// Unjudged names the kinds of cables that the plan lacks; nil for none.
	Unjudged []string

	*binder
	number []int // by NodeID of f, then of invented nodes: index in the builder, or -1
}

// Bind finds the nodes and ports of f that a plan names, and makes the fabric
// that the plan describes. A device name means the first of these that exists:
// a node of that GUID; an adapter that the port names ("HOST ibp11s0f0"); a
// switch system, whose ports may be on several chips ("Blade 16_Port 2/20" is
// port 20 of the chip that describes itself as .../L16/U2); a node of that
// description or name; a host with one adapter. Else the fabric lacks it.
//
// Errors are *fabric.ParseError: a name that means several nodes, a port that no node of
// the kind can have, a port with two cables. Bind takes O(nodes + ports + cables).
func Bind(f *fabric.Fabric, p *Plan) (*Expected, error) {
	b := &binder{f: f, x: newIndex(f), plan: Join(p)}
	if err := b.bind(); err != nil {
		return nil, err
	}
	e := &Expected{binder: b, Problems: b.plan.Problems, Invented: map[fabric.GUID]bool{}}
	switches, hosts := true, true // the plan has no cables of this kind
	for i := range b.bound {
		if b.isSwitch(b.bound[i].ends[0].node) && b.isSwitch(b.bound[i].ends[1].node) {
			switches = false
		} else {
			hosts = false
		}
	}
	if switches {
		e.Unjudged = append(e.Unjudged, "cables between switches")
	}
	if hosts {
		e.Unjudged = append(e.Unjudged, "cables of hosts")
	}
	var err error
	e.Fabric, err = e.build(switches, hosts)
	return e, err
}

// build makes the fabric. switches is set if the plan has no cables between switches, hosts if none
// of hosts.
func (e *Expected) build(switches, hosts bool) (*fabric.Fabric, error) {
	f := e.f
	in := e.members(switches, hosts)
	e.number = make([]int, f.NumNodes()+len(e.invented))
	ports := make([]fabric.PortNum, len(e.number)) // by node: the highest that the plan names
	for i := range e.bound {
		for _, s := range e.bound[i].ends {
			ports[s.node] = max(ports[s.node], s.num)
		}
	}
	out := &fabric.Builder{}
	add := func(n fabric.NodeID, x fabric.Node) (err error) {
		x.NumPorts = max(x.NumPorts, ports[n])
		e.number[n], err = out.AddNode(x)
		return err
	}
	for _, n := range f.Nodes() {
		e.number[n] = -1
		if !in[n] {
			continue
		}
		x := *f.Node(n)
		x.Description = f.Name(n).Text
		if err := add(n, x); err != nil {
			return nil, err
		}
	}
	next := fabric.GUID(1)
	for i := range e.invented {
		n := fabric.NodeID(f.NumNodes() + i)
		for {
			if _, taken := f.NodeByGUID(next); !taken {
				break
			}
			next++
		}
		if err := add(n, fabric.Node{GUID: next, Type: e.invented[i].typ, Description: e.invented[i].name}); err != nil {
			return nil, err
		}
		for num, label := range e.invented[i].ports {
			if num <= ports[n] {
				if err := out.SetLabel(e.number[n], num, label); err != nil {
					return nil, err
				}
			}
		}
		e.Invented[next] = true
		next++
	}
	for i := range e.bound {
		x := e.bound[i].ends
		if err := out.Connect(e.number[x[0].node], x[0].num, e.number[x[1].node], x[1].num, fabric.Link{}); err != nil {
			return nil, err
		}
	}
	for _, c := range f.Cables() {
		p, q := c.A, c.B
		if !in[f.Owner(p)] || !in[f.Owner(q)] {
			continue
		}
		unjudged := hosts
		if f.IsSwitch(f.Owner(p)) && f.IsSwitch(f.Owner(q)) {
			unjudged = switches
		}
		if e.x.planned(p, q) && !unjudged {
			continue
		}
		a, z := e.number[f.Owner(p)], e.number[f.Owner(q)]
		_, _, taken := out.Connected(a, f.Num(p))
		_, _, also := out.Connected(z, f.Num(q))
		if taken || also {
			continue
		}
		if err := out.Connect(a, f.Num(p), z, f.Num(q), f.Link(p)); err != nil {
			return nil, err
		}
	}
	return out.Build()
}

// members returns by NodeID which nodes of f the plan expects: those that it names, all chips
// of a system if it names one of them, and their aggregation nodes. switches and hosts are
// those of build: if set, all nodes of that kind are expected.
func (b *binder) members(switches, hosts bool) []bool {
	f := b.f
	in := make([]bool, f.NumNodes())
	systems := map[string]bool{}
	for _, n := range f.Nodes() {
		in[n] = b.mentioned[n] || hosts && !f.IsSwitch(n) || switches && f.IsSwitch(n)
		if in[n] && f.IsSwitch(n) {
			systems[b.x.systemOf(n)] = true
		}
	}
	for _, n := range f.Switches() {
		in[n] = in[n] || b.x.systemOf(n) != "" && systems[b.x.systemOf(n)]
	}
	for _, p := range f.CAPorts() {
		if q := f.Peer(p); q != fabric.NoPort && in[f.Owner(q)] && f.Kind(f.Owner(p)) == fabric.AggregationKind {
			in[f.Owner(p)] = true
		}
	}
	return in
}

// systemOf returns a key for the system of a switch: its GUID, else the name that its cards share;
// "" for none.
func (x *index) systemOf(s fabric.NodeID) string {
	if g := x.f.Node(s).SystemGUID; g != 0 {
		return g.String()
	}
	if p := x.parts[s]; p.Card != 0 {
		return fold(p.System)
	}
	return ""
}

// planned returns true for a cable that is plugged by hand.
func (x *index) planned(p, q fabric.PortID) bool {
	m, n := x.f.Owner(p), x.f.Owner(q)
	if x.f.IsSwitch(m) && x.f.IsSwitch(n) {
		// A cable between two chips of one system is inside the chassis, unless both are on leaf
		// cards, whose ports are on the front.
		return m == n || x.parts[m].Card == 'L' && x.parts[n].Card == 'L' || x.systemOf(m) == "" || x.systemOf(m) != x.systemOf(n)
	}
	return x.f.Kind(m) != fabric.AggregationKind && x.f.Kind(n) != fabric.AggregationKind
}

// Verdict is what differs between a fabric and a plan, cable by cable.
type Verdict struct {
	Files []string `json:"files"`
	// Planned counts the cables of the plan, AsPlanned those of them that are in the fabric.
	Planned   int `json:"planned"`
	AsPlanned int `json:"as_planned"`
	// Placeholders counts cables to hosts without a name, such as "Server 1" of every rack, where
	// the fabric has some host.
	Placeholders    int        `json:"placeholders"`
	Miswired        []Miswired `json:"miswired"`
	MissingInFabric []Listed   `json:"missing_in_fabric"`
	MissingInPlan   []Listed   `json:"missing_in_plan"`
	Unjudged        []string   `json:"unjudged"` // kinds of cables that the plan lacks
}

// Miswired is a cable that is not where the plan has it.
type Miswired struct {
	Expected Listed `json:"expected"`
	Actual   Listed `json:"actual"`
	Mend     string `json:"mend"` // the plugs to move or to exchange
}

// Listed is a cable in a list.
type Listed struct {
	Cable string `json:"cable"`          // DEVICE/PORT - DEVICE/PORT, as UFM's reports have it
	File  string `json:"file,omitempty"` // of the plan; "" if the plan lacks the cable
	Line  int    `json:"line,omitempty"`
}

// String writes the verdict as lines of text.
func (v *Verdict) String() string {
	s := fmt.Sprintf("%s: %s as planned, %s miswired, %s missing in the fabric, %s missing in the plan",
		text.CountGrouped(v.Planned, "cable", "cables"), text.Grouped(v.AsPlanned), text.Grouped(len(v.Miswired)),
		text.Grouped(len(v.MissingInFabric)), text.Grouped(len(v.MissingInPlan)))
	if v.Planned > 0 && v.AsPlanned == 0 && len(v.Miswired) == 0 {
		s += "\nno cable is as planned: the plan may be of another fabric, or its names want --node-name-map"
	}
	if v.Placeholders > 0 {
		s += fmt.Sprintf("\n%s of hosts that the plan does not name: any host will do", text.CountGrouped(v.Placeholders, "cable", "cables"))
	}
	for _, kind := range v.Unjudged {
		s += "\nthe plan has no " + kind + ": these are not judged"
	}
	return s
}

func listed(c *Cable) Listed { return Listed{Cable: c.String(), File: c.File, Line: c.Line} }

// Judge makes the verdict of r, which cabling.Check found with e.Fabric as the expectation. It also
// returns findings that Check cannot see: hosts cabled by another adapter.
func (e *Expected) Judge(r *cabling.Result) (*Verdict, []verify.Finding) {
	f := e.f
	w := newWriter(f)
	v := &Verdict{Files: e.plan.Files, Planned: len(e.bound), Placeholders: e.filled, Unjudged: append([]string{}, e.Unjudged...),
		Miswired: []Miswired{}, MissingInFabric: []Listed{}, MissingInPlan: []Listed{}}
	planned := make(map[fabric.PortID]*Cable, 2*len(e.bound)) // by both ports
	var beyond []Listed                                       // to ports that the fabric lacks
	for i := range e.bound {
		x := &e.bound[i]
		p, q := e.port(x.ends[0]), e.port(x.ends[1])
		if p == fabric.NoPort || q == fabric.NoPort {
			beyond = append(beyond, listed(x.cable))
			continue
		}
		planned[p], planned[q] = x.cable, x.cable
	}
	actual := func(c [2]fabric.PortID) Listed { return Listed{Cable: w.cable(c[0], c[1])} }
	expected := func(c [2]fabric.PortID) Listed {
		if x := planned[c[0]]; x != nil && x == planned[c[1]] {
			return listed(x)
		}
		return Listed{Cable: w.cable(c[0], c[1])} // a cable inside a chassis
	}
	for i := range r.Recabled {
		c := &r.Recabled[i]
		for j, m := range c.Moves {
			mend := m.Text(f)
			if j == 0 {
				for _, x := range c.Surplus {
					mend = fmt.Sprintf("take out the cable from %s to %s, then %s", f.PortName(x[0]), f.PortName(x[1]), mend)
				}
			}
			if q := f.Peer(m.To); !m.Exchange && q != fabric.NoPort && e.number[f.Owner(q)] < 0 {
				mend += ", where " + f.PortName(q) + " is now"
			}
			v.Miswired = append(v.Miswired, Miswired{expected(m.Want), actual(m.Have), mend})
		}
		v.MissingInFabric = append(v.MissingInFabric, text.Each(c.Lacking, expected)...)
		v.MissingInPlan = append(v.MissingInPlan, text.Each(c.Surplus, actual)...)
	}
	v.MissingInFabric = append(v.MissingInFabric, beyond...)
	for _, c := range f.Cables() {
		if e.number[f.Owner(c.A)] < 0 || e.number[f.Owner(c.B)] < 0 {
			v.MissingInPlan = append(v.MissingInPlan, actual([2]fabric.PortID{c.A, c.B}))
		}
	}
	findings := e.otherAdapters(v, w)
	v.AsPlanned = v.Planned - len(v.Miswired) - len(v.MissingInFabric)
	return v, findings
}

// otherAdapters adds to v the cables to another adapter of the host that the plan names, and
// returns their findings.
func (e *Expected) otherAdapters(v *Verdict, w *writer) []verify.Finding {
	var list []verify.Finding
	for _, s := range e.substitutes {
		f, at := e.f, e.f.Peer(s.actual)
		meant := s.cable.Ends[s.end].Port
		mend := fmt.Sprintf("move the plug in %s to %q of the same host, or correct the plan", f.PortName(s.actual), meant)
		v.Miswired = append(v.Miswired, Miswired{listed(s.cable), Listed{Cable: w.cable(s.actual, at)}, mend})
		x := verify.NewFinding(cabling.Rules, cabling.MovedCable, 1, "%s leads to %s and should lead to %q; to mend: %s", f.PortName(at), f.PortName(s.actual), meant, mend)
		x.Ports = verify.EndpointsOf(f, at, s.actual)
		if n := f.Owner(at); f.IsSwitch(n) {
			x.Switch = f.Node(n).GUID
		}
		list = append(list, x)
	}
	return list
}
