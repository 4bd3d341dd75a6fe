package plugin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/ibweave/ibweave/compile"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/mesh"
	"github.com/ibweave/ibweave/mft"
	"github.com/ibweave/ibweave/sminterface/mad"
	"github.com/ibweave/ibweave/state"
	"github.com/ibweave/ibweave/verify"
)

// joinReceives has the join states of full members and non-members, which
// send and receive; others only send. No join state means only to receive:
// see declaredGroups. OpenSM itself knows which members keep a group alive.
const (
	joinReceives = mad.FullMember | mad.NonMember
	joinSends    = joinReceives | mad.SendOnlyNonMember | mad.SendOnlyFullMember
)

// Box is an MLID with OpenSM's groups on it: one group, or several
// if OpenSM was told to put IPv6's solicited-node groups together.
type Box struct {
	MLID   fabric.LID
	Groups []Group
}

// Group is a multicast group of OpenSM's.
type Group struct {
	MGID    mft.MGID
	SL      fabric.SL
	Members []Member
}

// Member is a port that has joined.
type Member struct {
	Port  fabric.GUID
	State mad.JoinState
}

// SwitchPort is a port in a mask.
type SwitchPort struct {
	Switch fabric.GUID
	Port   fabric.PortNum
}

// wish describes the masks that a box needs on a fabric.
type wish struct {
	mgid    mft.MGID // the lowest of the box, and the key of its masks
	mlid    fabric.LID
	sl      fabric.SL
	members mft.Group // senders and receivers only
	scheme  string    // by which compile made the group, "" if not known
	unknown int       // members that the fabric, or its main piece, lacks
}

// equal returns true if masks for a also suit b.
func (a *wish) equal(b *wish) bool {
	return a.mgid == b.mgid && a.mlid == b.mlid && a.sl == b.sl && a.scheme == b.scheme &&
		slices.Equal(a.members.Senders, b.members.Senders) && slices.Equal(a.members.Receivers, b.members.Receivers)
}

// planned has the masks of a box.
type planned struct {
	wish
	scheme   string
	ports    []fabric.PortID
	verified bool
}

// masks has the state of multicast: masks for the current routing,
// and the last verified masks of any routing. Both are kept by
// MGID, since OpenSM may change the MLID of a group at any time.
type masks struct {
	p          *Plugin
	generation uint64 // of the routing that the fields below are for
	sweep      uint64 // Plugin.sweeps when OpenSM last asked
	plans      int    // how often set was planned
	tables     *Tables
	set        map[mft.MGID]*planned
	last       map[mft.MGID][]SwitchPort
	schemes    map[string]mft.Scheme
	grid       *mesh.Grid
	detected   bool
}

// HandlesMulticast returns true if OpenSM should ask for masks.
func (p *Plugin) HandlesMulticast() bool {
	return p.config != nil && p.config.Multicast.Scheme != SchemeOpenSM
}

// Masks returns the ports in the masks of a box, by switch in the
// order of GUIDs. OpenSM has no masks for it at this moment, so Masks
// returns no error: instead of masks that cannot be built or verified
// as wanted, it returns the last verified ones if they still fit, else
// an updn-tree, and at worst any tree. OpenSM's log then gets a line.
//
// OpenSM asks for one MLID after another. If masks are missing, a
// port has joined or left, or the routing is new, one call takes all
// boxes from boxes, builds what has changed, and verifies everything
// at once, with unicast. The other calls find their masks ready.
func (p *Plugin) Masks(box Box, boxes func() []Box) []SwitchPort {
	m := p.masks
	t := p.Current()
	if t == nil || len(box.Groups) == 0 {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	var x *planned
	failed := p.guard(t.Engine, func() error {
		m.renew(t)
		w := m.wish(&box)
		if x = m.set[w.mgid]; x != nil && x.wish.equal(&w) {
			return nil
		}
		x = nil
		if err := m.plan(boxes()); err != nil {
			return err
		}
		if x = m.set[w.mgid]; x == nil || !x.wish.equal(&w) {
			x = nil
			return fmt.Errorf("MLID %#x is not among OpenSM's groups", uint16(box.MLID))
		}
		return nil
	})
	if failed != nil {
		failed.Code = cmp.Or(failed.Code, Multicast)
		p.report(failed)
		return m.emergency(&box)
	}
	return m.switchPorts(x.ports)
}

// renew drops what belongs to an older routing than t. It also
// drops masks that were planned while ports joined and left, once
// OpenSM sweeps and so asks for all boxes: they may depend on the
// order of events. So after each sweep masks depend only on the
// subnet and its members, and another OpenSM has the same.
//
// Only the first call after a routing is part of a sweep. Later ones are about groups that ports
// join and leave, and the masks of all other groups stay.
func (m *masks) renew(t *Tables) {
	swept := m.sweep != m.p.sweeps
	m.sweep = m.p.sweeps
	if m.tables != nil && m.generation == t.generation && (m.plans <= 1 || !swept) {
		return
	}
	m.generation, m.tables, m.plans = t.generation, t, 0
	m.set = make(map[mft.MGID]*planned)
	m.schemes = make(map[string]mft.Scheme)
	m.grid, m.detected = nil, false
}

// wish returns what a box asks for: the senders and receivers of all its groups, and MGID,
// SL and scheme of the group with the lowest MGID.
func (m *masks) wish(box *Box) wish {
	w := wish{mlid: box.MLID}
	for i := range box.Groups {
		g := &box.Groups[i]
		declared := m.p.groups.of(g.MGID)
		if i == 0 || g.MGID.Less(w.mgid) {
			w.mgid, w.sl, w.scheme = g.MGID, g.SL, ""
			if declared != nil {
				w.scheme = declared.scheme
			}
		}
		for k := range g.Members {
			member := &g.Members[k]
			p, ok := m.tables.endPort(member.Port)
			if !ok || !m.tables.joinable(p) {
				w.unknown++
				continue
			}
			if declared.sends(member) {
				w.members.Senders = append(w.members.Senders, p)
			}
			if member.State&joinReceives != 0 {
				w.members.Receivers = append(w.members.Receivers, p)
			}
		}
	}
	for _, list := range []*[]fabric.PortID{&w.members.Senders, &w.members.Receivers} {
		slices.Sort(*list)
		*list = slices.Compact(*list)
	}
	w.members.Name, w.members.MLID, w.members.SL = w.mgid.String(), w.mlid, w.sl
	return w
}

// joinable returns true if masks can lead to an end port: it is a switch's, or
// has a cable to a switch, and that switch is in the largest piece of the subnet.
func (t *Tables) joinable(p fabric.PortID) bool {
	at := t.Fabric.Attachment(p)
	return at != fabric.NoPort && t.pieces.Of[t.Fabric.Owner(at)] == t.largest
}

func (t *Tables) endPort(g fabric.GUID) (fabric.PortID, bool) {
	if t.ports == nil {
		t.ports = make(map[fabric.GUID]fabric.PortID, t.Fabric.NumNodes())
		t.Fabric.EndPorts(func(p fabric.PortID) { t.ports[t.Fabric.PortGUID(p)] = p })
	}
	p, ok := t.ports[g]
	return p, ok
}

// The schemes that steps lists.
const (
	unionScheme    = "union"
	rowScheme      = "union-row"
	mergeScheme    = "union-merge"
	turnsScheme    = "union-turns"
	combScheme     = "comb"
	spamScheme     = "spam"
	updnTreeScheme = "updn-tree"
	regionScheme   = "region"
	lastScheme     = "last verified"
	plainScheme    = "any tree"
)

// multicastSchemes lists the values of multicast.scheme. The schemes
// in it need one MLID for a group, as OpenSM gives it.
var multicastSchemes = []string{SchemeAuto, unionScheme, mergeScheme, combScheme, spamScheme, updnTreeScheme, regionScheme, SchemeOpenSM}

// steps lists the schemes to try for a box, in order: the one that its
// group was compiled with, that of the configuration, the compiler's
// defaults. Schemes that need several MLIDs for a group are left out.
// Masks of the last two steps are used even if they have errors.
func (m *masks) steps(w *wish) []string {
	r := m.tables.Routing
	var list []string
	add := func(name string) {
		if !slices.Contains(list, name) {
			list = append(list, name)
		}
	}
	switch w.scheme {
	case "", SchemeOpenSM:
	case rowScheme: // on one MLID it is union-merge
		add(mergeScheme)
	default:
		add(w.scheme)
	}
	if s := m.p.config.Multicast.Scheme; s != SchemeAuto {
		add(s)
	}
	if r.Engine == spamScheme {
		add(spamScheme)
	}
	senders := len(w.members.Senders)
	for _, s := range compile.DefaultSchemes(r, r.Order == nil && m.mesh() != nil, senders) {
		if s != rowScheme && (senders <= 1 || s != turnsScheme) {
			add(s)
		}
	}
	return append(list, lastScheme, updnTreeScheme, plainScheme)
}

// mesh returns the grid of the fabric, nil if the fabric is no grid.
func (m *masks) mesh() *mesh.Grid {
	if !m.detected {
		m.detected = true
		m.grid, _ = mesh.Detect(m.tables.Fabric, mesh.DetectOptions{Origin: m.p.config.Origin, Dims: m.p.config.Dims})
	}
	return m.grid
}

// scheme makes the named scheme, once for each routing. groups
// are those that it is first made for. For combScheme it chooses the
// trunk, a row of the grid, by the declared groups, as the compiler
// does; if there are none, or that fails, by groups.
func (m *masks) scheme(ctx context.Context, name string, groups []mft.Group) (mft.Scheme, error) {
	if s := m.schemes[name]; s != nil {
		return s, nil
	}
	if name != combScheme {
		s, err := compile.NewScheme(ctx, name, m.tables.Routing)
		if err == nil {
			m.schemes[name] = s
		}
		return s, err
	}
	var s mesh.Comb
	var err error
	whole := m.p.groups.whole(m.tables)
	if len(whole) > 0 {
		s, _, err = mesh.Comb{Grid: m.mesh()}.Choose(ctx, m.tables.Routing, whole)
	}
	if len(whole) == 0 || err != nil {
		s, _, err = mesh.Comb{Grid: m.mesh()}.Choose(ctx, m.tables.Routing, groups)
	}
	if err != nil {
		return nil, err
	}
	m.schemes[name] = s
	return s, nil
}

// draft is a box whose masks are being planned.
type draft struct {
	wish
	steps []string
	step  int // index of the current one in steps
	ports []fabric.PortID
	built bool
	why   string // why the first step failed
	// trusted means that the masks are already in force. OpenSM does not ask for
	// them now, so they stay even if the checker finds errors.
	trusted bool
}

// final returns true if no better step is left.
func (d *draft) final() bool { return d.step >= len(d.steps)-2 }

// next goes on to the next step; why says why this one failed.
func (d *draft) next(why string) {
	if d.why == "" {
		d.why = d.steps[d.step] + ": " + why
	}
	d.step, d.built, d.trusted = d.step+1, false, false
}

// plan makes m.set for all boxes. Boxes that have not changed keep their masks.
func (m *masks) plan(boxes []Box) error {
	ctx, cancel := context.WithTimeout(context.Background(), m.p.config.Timeout)
	defer cancel()
	start := time.Now()
	m.plans++
	var drafts []*draft
	changed := 0
	for i := range boxes {
		if len(boxes[i].Groups) == 0 {
			continue
		}
		w := m.wish(&boxes[i])
		d := &draft{wish: w, steps: m.steps(&w)}
		if old := m.set[w.mgid]; old != nil && old.verified && old.wish.equal(&w) {
			d.ports, d.built, d.trusted = old.ports, true, true
			d.step = max(0, slices.Index(d.steps, old.scheme))
		} else {
			changed++
		}
		drafts = append(drafts, d)
	}
	slices.SortFunc(drafts, func(a, b *draft) int { return int(a.mlid) - int(b.mlid) })
	var took struct{ build, verify time.Duration }
	var doubt error // why the masks are not verified
	for {
		at := time.Now()
		if err := m.build(ctx, drafts); err != nil {
			return err
		}
		took.build += time.Since(at)
		at = time.Now()
		again, err := m.check(ctx, drafts)
		took.verify += time.Since(at)
		doubt = err
		if !again {
			break
		}
	}
	set := make(map[mft.MGID]*planned, len(drafts))
	ports, worse := 0, 0
	var first *draft
	for _, d := range drafts {
		set[d.mgid] = &planned{wish: d.wish, scheme: d.steps[d.step], ports: d.ports, verified: doubt == nil}
		ports += len(d.ports)
		if doubt == nil {
			m.last[d.mgid] = m.switchPorts(d.ports)
		}
		if d.step >= slices.Index(d.steps, lastScheme) {
			if worse++; first == nil {
				first = d
			}
		}
		if d.why != "" && !d.trusted {
			m.p.log.Warn("multicast steps down", zap.Stringer("mgid", d.mgid), zap.String("scheme", d.steps[d.step]), zap.String("why", d.why))
		}
		if d.unknown > 0 {
			m.p.log.Warn("members are not in the subnet", zap.Stringer("mgid", d.mgid), zap.Int("members", d.unknown))
		}
	}
	for g := range m.last {
		if set[g] == nil {
			delete(m.last, g)
		}
	}
	m.set = set
	switch {
	case doubt != nil:
		m.p.report(&Error{Code: Multicast, Engine: m.tables.Engine, Err: fmt.Errorf("multicast masks are installed that are not proven: %w", doubt)})
	case worse > 0:
		m.p.report(&Error{Code: Multicast, Engine: m.tables.Engine,
			Err: fmt.Errorf("%d groups have %s, such as %s: %s", worse, first.steps[first.step], first.mgid, first.why)})
	}
	m.p.log.Info("multicast", zap.Int("groups", len(drafts)), zap.Int("changed", changed), zap.Int("ports", ports),
		zap.Bool("verified", doubt == nil), zap.Duration("build", took.build), zap.Duration("verify", took.verify),
		zap.Duration("total", time.Since(start)))
	return nil
}

// build makes masks for every draft, by its current step or a later one.
func (m *masks) build(ctx context.Context, drafts []*draft) error {
	for {
		var names []string
		by := make(map[string][]*draft)
		for _, d := range drafts {
			if d.built {
				continue
			}
			name := d.steps[d.step]
			if by[name] == nil {
				names = append(names, name)
			}
			by[name] = append(by[name], d)
		}
		if len(names) == 0 {
			return nil
		}
		slices.Sort(names)
		for _, name := range names {
			if err := ctx.Err(); err != nil {
				return err
			}
			m.buildWith(ctx, name, by[name])
		}
	}
}

// buildWith builds drafts with one scheme. Those that it does not serve go on to
// their next step.
func (m *masks) buildWith(ctx context.Context, name string, drafts []*draft) {
	switch name {
	case lastScheme:
		for _, d := range drafts {
			if ports, ok := m.stillFit(d.mgid); ok {
				d.ports, d.built = ports, true
			} else {
				d.next("there are no masks from before that fit")
			}
		}
		return
	case plainScheme:
		for _, d := range drafts {
			d.ports, d.built = anyTree(m.tables.Fabric, &d.members), true
		}
		return
	}
	failed := m.p.guard(m.tables.Engine, func() error { return m.buildAll(ctx, name, drafts) })
	if failed == nil {
		return
	}
	if len(drafts) == 1 {
		drafts[0].next(failed.Err.Error())
		return
	}
	for i := range drafts {
		if one := drafts[i : i+1]; !one[0].built {
			m.buildWith(ctx, name, one)
		}
	}
}

// buildAll builds all drafts with one scheme; on an error it builds none.
func (m *masks) buildAll(ctx context.Context, name string, drafts []*draft) error {
	groups := text.Each(drafts, func(d *draft) mft.Group { return d.members })
	s, err := m.scheme(ctx, name, groups)
	if err != nil {
		return err
	}
	plan, err := s.Build(ctx, m.tables.Routing, groups, mft.Options{Balance: m.p.config.Multicast.Balance})
	if err != nil {
		return err
	}
	trees := make([]int, len(drafts))
	for i := range plan.Trees {
		trees[plan.Trees[i].Group]++
	}
	for i, d := range drafts {
		if trees[i] > 1 {
			d.next(fmt.Sprintf("it takes %d MLIDs, and OpenSM has one for the group", trees[i]))
			continue
		}
		d.ports, d.built = slices.Clone(plan.Tables.Ports(d.mlid)), true
	}
	return nil
}

// check verifies all masks together with the unicast tables.
// Drafts with errors go on to their next step, unless trusted or
// final; again is true if one did. err is the first error found.
func (m *masks) check(ctx context.Context, drafts []*draft) (again bool, err error) {
	r := m.tables.Routing
	mc := &mft.Plan{Tables: mft.NewTables(r.Fabric)}
	for i, d := range drafts {
		mc.Tables.Add(d.mlid, d.ports)
		mc.Trees = append(mc.Trees, mft.Tree{Group: i, Name: d.mgid.String(), MGID: d.mgid, MLID: d.mlid,
			Senders: d.members.Senders, Receivers: d.members.Receivers, SL: d.sl, Scheme: d.steps[d.step]})
	}
	s := state.Of(r)
	s.Multicast = mc
	var result *verify.Result
	failed := m.p.guard(m.tables.Engine, func() error {
		var err error
		result, err = verify.Check(ctx, s, verify.Options{Complete: true, Findings: len(drafts) + 1})
		return err
	})
	if failed != nil {
		return false, failed.Err
	}
	if !m.tables.result.Engine.Guarantee().Has(lft.NoCreditLoop) {
		result.Regrade(verify.CreditLoop, verify.Warning)
		result.Regrade(verify.MulticastCreditLoop, verify.Warning)
		result.Regrade(verify.ManagementCreditLoop, verify.Warning)
	}
	byMLID := make(map[fabric.LID]*draft, len(drafts))
	for _, d := range drafts {
		byMLID[d.mlid] = d
	}
	for i := range result.Findings {
		f := &result.Findings[i]
		if f.Severity != verify.Error || !slices.Contains([]string{verify.MulticastMissing, verify.MulticastDuplicate,
			verify.MulticastLoop, verify.MulticastCreditLoop}, f.Rule) {
			continue // unicast has been judged before
		}
		if err == nil {
			err = errors.New(f.Rule + ": " + f.Message)
		}
		if d := byMLID[f.LID]; f.Rule != verify.MulticastCreditLoop {
			if d != nil && !d.final() && !d.trusted {
				d.next(f.Message)
				again = true
			}
			continue
		}
		for _, hop := range f.Witness {
			if d := byMLID[hop.LID]; d != nil && !d.final() && !d.trusted && d.built {
				d.next(f.Message)
				again = true
			}
		}
	}
	return again, err
}

// stillFit returns the last verified masks of a group, and true
// if all their ports exist and have cables, or are ports 0.
func (m *masks) stillFit(g mft.MGID) ([]fabric.PortID, bool) {
	list, ok := m.last[g]
	if !ok {
		return nil, false
	}
	f := m.tables.Fabric
	ports := make([]fabric.PortID, 0, len(list))
	for _, at := range list {
		s, ok := f.SwitchByGUID(at.Switch)
		if !ok || at.Port > f.Node(s).NumPorts {
			return nil, false
		}
		p := f.Port(s, at.Port)
		if at.Port != fabric.ManagementPort && f.Peer(p) == fabric.NoPort {
			return nil, false
		}
		ports = append(ports, p)
	}
	slices.Sort(ports)
	return ports, true
}

// emergency returns masks if nothing else works: the last
// verified ones that still fit, else any tree.
func (m *masks) emergency(box *Box) (ports []SwitchPort) {
	failed := m.p.guard(m.tables.Engine, func() error {
		w := m.wish(box)
		if list, ok := m.stillFit(w.mgid); ok {
			ports = m.switchPorts(list)
			return nil
		}
		ports = m.switchPorts(anyTree(m.tables.Fabric, &w.members))
		return nil
	})
	if failed != nil {
		failed.Code = cmp.Or(failed.Code, Multicast)
		m.p.report(failed)
	}
	return ports
}

func (m *masks) switchPorts(ports []fabric.PortID) []SwitchPort {
	f := m.tables.Fabric
	return text.Each(ports, func(p fabric.PortID) SwitchPort { return SwitchPort{f.Node(f.Owner(p)).GUID, f.Num(p)} })
}

// anyTree returns the masks of a tree that joins all members:
// a breadth-first search from the first member's switch,
// without branches that have no member. It depends on the
// cables alone. Members that no path reaches are left out.
func anyTree(f *fabric.Fabric, g *mft.Group) []fabric.PortID {
	var ports []fabric.PortID
	wanted := make([]bool, f.NumSwitches())
	root := fabric.NoNode
	for _, list := range [2][]fabric.PortID{g.Receivers, g.Senders} {
		for _, p := range list {
			at := f.Attachment(p)
			if at == fabric.NoPort {
				continue
			}
			if root == fabric.NoNode {
				root = f.Owner(at)
			}
			wanted[f.Owner(at)] = true
		}
	}
	if root == fabric.NoNode {
		return nil
	}
	up := slices.Repeat([]fabric.PortID{fabric.NoPort}, f.NumSwitches()) // the port towards the root
	order := []fabric.NodeID{root}
	for i := 0; i < len(order); i++ {
		channels, to := f.SwitchLinks(order[i])
		for k, s := range to {
			if s != root && up[s] == fabric.NoPort {
				up[s] = f.Peer(channels[k])
				order = append(order, s)
			}
		}
	}
	for _, s := range slices.Backward(order[1:]) {
		if wanted[s] {
			parent := f.Peer(up[s])
			wanted[f.Owner(parent)] = true
			ports = append(ports, up[s], parent)
		}
	}
	for _, p := range g.Receivers {
		if at := f.Attachment(p); at != fabric.NoPort && (f.Owner(at) == root || up[f.Owner(at)] != fabric.NoPort) {
			ports = append(ports, at)
		}
	}
	slices.Sort(ports)
	return slices.Compact(ports)
}
