// Package whatif finds out what happens to a fabric when cables or switches
// fail: who is cut off, how many forwarding entries a subnet manager has to
// write, whether there is a credit loop, and where the load goes. If the
// engine can (lft.Incremental), only what changed is routed and verified, else
// all. It makes no promise to other modules.
package whatif

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/ibweave/ibweave/audit/drain"
	"github.com/ibweave/ibweave/audit/groups"
	"github.com/ibweave/ibweave/compile"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/par"
	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/verify"
	"github.com/ibweave/ibweave/verify/bound"
)

// What fails: Options.Kind.
const (
	Links    = "links"    // a cable, host cables included
	Switches = "switches" // a switch with all its cables
)

// Options.Only: which cables fail, with Links; "" for all.
const (
	SwitchCables = "isl"   // between two switches
	HostCables   = "hosts" // with an end at a CA or router
)

// Options are the settings of Run.
type Options struct {
	Kind  string // "" for Links
	Only  string
	Depth int // how many fail together, 1 or 2
	// At limits failures to those that touch one of these switches; empty for all failures.
	At []fabric.NodeID
	// Sample is how many failures to try, drawn at random without repetition; 0 tries
	// all.
	Sample int
	Seed   uint64
	// Shard is the part to try, from 1 to Shards; 0 for all. The failures of a shard do not depend
	// on the machine.
	Shard, Shards int
	Workers       int // goroutines; 0 for one on each CPU. The result does not depend on it.
	// Progress, if not nil, is called with the numbers of failures done and of all, from several
	// goroutines.
	Progress func(done, total int)
}

// Result has the results of all failures. Its JSON is a file of its own, which Merge reads.
type Result struct {
	Version string         `json:"version"` // of ibweave
	Engine  string         `json:"engine"`
	Options map[string]any `json:"options"` // of the routing, as in a manifest
	Fabric  string         `json:"fabric"`  // SHA-256 of nodes and cables, see verify.FabricHash
	Fail    string         `json:"fail"`    // Links or Switches
	Depth   int            `json:"depth"`
	Sample  int            `json:"sample,omitempty"`
	Seed    uint64         `json:"seed,omitempty"`
	// Only is "isl" or "hosts" if only these cables fail. Each failure touches one of the switches
	// At, or any if there are none.
	Only   string        `json:"only,omitempty"`
	At     []fabric.GUID `json:"at,omitempty"`
	Shard  string        `json:"shard,omitempty"` // "2/5"
	Before Before        `json:"before"`
	// Failures is the number of Cases, with those of other shards.
	Failures int    `json:"failures"`
	Cases    []Case `json:"cases"` // the most harm first
}

// Before is the fabric as it is.
type Before struct {
	Pairs       int64   `json:"pairs"` // of a CA or router port and a LID of another one
	Unreachable int64   `json:"unreachable"`
	CreditLoops int     `json:"credit_loops"`
	MaxRoutes   int64   `json:"max_routes_per_link"`
	MeanRoutes  float64 `json:"mean_routes_per_link"`
	// MaxRelative is the greatest relative load, in routes on a cable of Fastest; 0 and "" if rates
	// between switches are unknown or do not differ.
	MaxRelative float64 `json:"max_relative_load,omitempty"`
	Fastest     string  `json:"fastest,omitempty"`
	Entries     int64   `json:"entries"` // of all tables
	// Hosts counts the hosts with several ports, see LostHosts.
	Hosts int `json:"hosts_with_several_ports,omitempty"`
	// Groups is nil without Result.AddGroups.
	Groups []groups.State `json:"host_groups,omitempty"`
}

// Case is the result of one failure.
type Case struct {
	Number int    `json:"number"` // among all failures of the fabric, from 0
	Failed []Part `json:"failed"`
	// Gone counts pairs with a port that lost its own cable: no routing can
	// save them. Lost counts pairs of ports that still have a cable, reached
	// each other before, and no longer do. If Lost is above 0, the failed part
	// is a single point of failure.
	Gone int64 `json:"gone_pairs"`
	Lost int64 `json:"lost_pairs"`
	// CreditLoops counts those after the failure, of management traffic too.
	CreditLoops int `json:"credit_loops"`
	// The first step, with the tables kept as far as possible.
	Step
	// Last is the same for the last step, the tables of compile --previous: see
	// lft.Options.Rebalance. It is nil if all was routed from scratch.
	Last *Step `json:"last,omitempty"`
	// Hosts is nil if no host loses all its ports at once.
	Hosts *LostHosts `json:"hosts_lost_at_once,omitempty"`
	// Groups lists the groups of hosts that lose uplinks or hosts.
	Groups []groups.Loss `json:"host_groups,omitempty"`
	// Refused is why the engine cannot route what is left; routing figures are then not set.
	Refused string `json:"refused,omitempty"`
	// RoutedFromScratch is set if all entries were made again: some may have changed without need.
	RoutedFromScratch bool `json:"anew,omitempty"`
}

// Step is tables after a failure.
type Step struct {
	// What a subnet manager writes, against the tables before the failure; nothing to a switch
	// without a cable.
	compile.Changes
	// MaxRoutes is the load of the busiest channel between switches.
	MaxRoutes int64 `json:"max_routes_per_link"`
	// MaxRelative is the greatest relative load, in routes on a cable of rate Before.Fastest; 0 if
	// that is "".
	MaxRelative float64 `json:"max_relative_load,omitempty"`
}

// Part is a cable, by both ends, or a switch.
type Part struct {
	GUID   fabric.GUID    `json:"guid"`
	Name   string         `json:"name"`
	Port   fabric.PortNum `json:"port,omitempty"` // 0 for a switch
	To     fabric.GUID    `json:"to,omitempty"`
	ToName string         `json:"to_name,omitempty"`
	ToPort fabric.PortNum `json:"to_port,omitempty"`
	// Label and ToLabel are the labels of the ports, see fabric.Fabric.Label.
	Label   string `json:"label,omitempty"`
	ToLabel string `json:"to_label,omitempty"`
	Host    bool   `json:"host,omitempty"` // a cable with an end at a CA or router
	// Ambiguous and ToAmbiguous are set if the name alone does not tell which node it is.
	Ambiguous   bool `json:"ambiguous,omitempty"`
	ToAmbiguous bool `json:"to_ambiguous,omitempty"`
}

// Names returns the names of what fails.
func (c *Case) Names() string {
	return strings.Join(text.Each(c.Failed, Part.String), " and ")
}

func (p Part) String() string {
	name := func(text string, guid fabric.GUID, ambiguous bool) fabric.Name {
		if !ambiguous {
			guid = 0
		}
		return fabric.Name{Text: text, GUID: guid}
	}
	a := name(p.Name, p.GUID, p.Ambiguous)
	if p.Port == 0 {
		return a.String()
	}
	return a.At(p.Port, p.Label) + " - " + name(p.ToName, p.To, p.ToAmbiguous).At(p.ToPort, p.ToLabel)
}

// Trivial returns true if only cables of hosts fail, and only these hosts are harmed. before is
// that of the Result.
func (c *Case) Trivial(before *Before) bool {
	return c.hosts() == len(c.Failed) && c.Refused == "" && c.Lost == 0 && c.CreditLoops <= before.CreditLoops
}

func (c *Case) hosts() int { return text.CountIf(c.Failed, func(p Part) bool { return p.Host }) }

// Orders are the names of the orders that Sort knows.
var Orders = []string{"harm", "load", "entries", "name"}

// Sort sorts the cases by one of Orders: the most harm first, the most loaded link first, the most
// entries to write first, or by the names of what fails. Equal cases, and all with another order,
// are in the order of harm.
func (r *Result) Sort(order string) {
	by, ok := map[string]func(a, b *Case) int{
		"load":    (*Case).compareLoad,
		"entries": func(a, b *Case) int { return cmp.Compare(b.Entries, a.Entries) },
		"name": func(a, b *Case) int {
			return slices.CompareFunc(a.Failed, b.Failed, func(x, y Part) int {
				return cmp.Or(cmp.Compare(x.Name, y.Name), cmp.Compare(x.Port, y.Port), cmp.Compare(x.GUID, y.GUID))
			})
		},
	}[order]
	if !ok {
		by = (*Case).compare
	}
	slices.SortFunc(r.Cases, func(a, b Case) int { return cmp.Or(by(&a, &b), a.compare(&b)) })
}

// compare puts the case that does more harm first. It compares, in this order:
// a refused routing, lost pairs, credit loops, fewer cables of hosts (which
// cut off their hosts in any fabric), hosts that lose all their ports, pairs
// that are gone, the greatest load, entries to write.
func (c *Case) compare(d *Case) int {
	refused := func(c *Case) int { return min(len(c.Refused), 1) }
	return cmp.Or(
		cmp.Compare(refused(d), refused(c)), cmp.Compare(d.Lost, c.Lost), cmp.Compare(d.CreditLoops, c.CreditLoops),
		cmp.Compare(c.hosts(), d.hosts()), d.Hosts.compare(c.Hosts), cmp.Compare(d.Gone, c.Gone), c.compareLoad(d), cmp.Compare(d.Entries, c.Entries),
		cmp.Compare(c.Number, d.Number),
	)
}

// compareLoad puts the case with the greater load first: the relative load, if rates differ.
func (c *Case) compareLoad(d *Case) int {
	return cmp.Or(cmp.Compare(d.MaxRelative, c.MaxRelative), cmp.Compare(d.MaxRoutes, c.MaxRoutes))
}

// failure is one or two parts that fail.
type failure struct {
	number int             // among those that Options.Kind and Only allow
	cut    []fabric.PortID // ports of a switch, or both ends of a cable
	parts  []Part
}

// listParts lists what can fail alone, in the order of NodeIDs and ports.
func listParts(f *fabric.Fabric, opt *Options) (list []failure) {
	add := func(p Part, cut ...fabric.PortID) { list = append(list, failure{len(list), cut, []Part{p}}) }
	if opt.Kind == Switches {
		for s := range fabric.NodeID(f.NumSwitches()) {
			var ports []fabric.PortID
			for p := range f.Node(s).NumPorts {
				ports = append(ports, f.Port(s, p+1))
			}
			name := f.Name(s)
			add(Part{GUID: f.Node(s).GUID, Name: name.Text, Ambiguous: name.GUID != 0}, ports...)
		}
		return list
	}
	for _, c := range f.Cables() {
		m, n := f.Owner(c.A), f.Owner(c.B)
		host := !f.IsSwitch(m) || !f.IsSwitch(n)
		if host && opt.Only == SwitchCables || !host && opt.Only == HostCables {
			continue
		}
		from, to := f.Name(m), f.Name(n)
		add(Part{
			GUID: f.Node(m).GUID, Name: from.Text, Port: f.Num(c.A), To: f.Node(n).GUID, ToName: to.Text, ToPort: f.Num(c.B), Host: host,
			Label: f.Label(c.A), ToLabel: f.Label(c.B),
			Ambiguous: from.GUID != 0, ToAmbiguous: to.GUID != 0,
		}, c.A, c.B)
	}
	return list
}

// listFailures lists the failures of the sample and the shard. all counts those of all shards.
func listFailures(f *fabric.Fabric, opt *Options) (list []failure, all int) {
	parts := listParts(f, opt)
	total, which := len(parts), func(i int) []int { return []int{i} }
	if opt.Depth == 2 {
		total, which = total*(total-1)/2, func(i int) []int { // (0,1), (0,2) ... (1,2) ...
			a := 0
			for ; i >= len(parts)-1-a; a++ {
				i -= len(parts) - 1 - a
			}
			return []int{a, a + 1 + i}
		}
	}
	var at []int // failures that touch a switch of opt.At
	if len(opt.At) > 0 {
		touches := func(p fabric.PortID) bool { return slices.Contains(opt.At, f.Owner(p)) }
		for i := range total {
			if slices.ContainsFunc(which(i), func(k int) bool { return slices.ContainsFunc(parts[k].cut, touches) }) {
				at = append(at, i)
			}
		}
		total = len(at)
	}
	chosen := draw(total, opt)
	for k, i := range chosen {
		if opt.Shards > 0 && k%opt.Shards != opt.Shard-1 {
			continue
		}
		if len(opt.At) > 0 {
			i = at[i]
		}
		x := failure{number: i}
		for _, k := range which(i) {
			x.cut, x.parts = append(x.cut, parts[k].cut...), append(x.parts, parts[k].parts...)
		}
		list = append(list, x)
	}
	return list, len(chosen)
}

// draw returns a sample of the numbers below n, ascending, by Floyd's algorithm, or all of them.
func draw(n int, opt *Options) (list []int) {
	first := 0
	if opt.Sample > 0 {
		first = max(0, n-opt.Sample)
	}
	rng := rand.New(rand.NewPCG(opt.Seed, 0))
	chosen := make(map[int]bool)
	for i := first; i < n; i++ {
		k := i
		if first > 0 {
			if k = rng.IntN(i + 1); chosen[k] {
				k = i
			}
			chosen[k] = true
		}
		list = append(list, k)
	}
	slices.Sort(list)
	return list
}

// Run tries failures of the fabric of base, which compile.Run made with route.
// Errors: those of compile.Run, except a *lft.DomainError after a failure.
func Run(ctx context.Context, base *compile.Result, route compile.Options, opt Options) (*Result, error) {
	f := base.Routing.Fabric
	list, all := listFailures(f, &opt)
	r := &Result{
		Engine: base.Engine.Name(), Fabric: fmt.Sprintf("%x", verify.FabricHash(f)), Fail: cmp.Or(opt.Kind, Links), Depth: opt.Depth,
		Failures: all, Cases: make([]Case, len(list)),
		Before: Before{
			Pairs: base.Verify.Unicast.Pairs, Unreachable: base.Verify.Unicast.Unreachable + base.Verify.Unicast.Loops,
			CreditLoops: base.Verify.CreditLoops.Count + base.Verify.Management.CreditLoops,
			MaxRoutes:   base.Verify.Balance.MaxRoutes, MeanRoutes: base.Verify.Balance.MeanRoutes,
			Entries: int64(f.NumSwitches()) * int64(f.MaxLID()),
		},
	}
	if scale := base.Verify.Scale(); scale.Differ {
		r.Before.MaxRelative, r.Before.Fastest = base.Verify.LoadOn(scale), scale.Fastest.String()
	}
	if opt.Sample > 0 {
		r.Sample, r.Seed = opt.Sample, opt.Seed
	}
	r.Only = opt.Only
	for _, s := range opt.At {
		r.At = append(r.At, f.Node(s).GUID)
	}
	if opt.Shards > 0 {
		r.Shard = fmt.Sprintf("%d/%d", opt.Shard, opt.Shards)
	}
	// Clone all before the first of them changes its tables.
	trials := make(chan *trial, par.Workers(opt.Workers, len(list)))
	first := newTrial(base, route, base.Verify.Scale())
	r.Before.Hosts = len(first.hosts.ports)
	for range cap(trials) - 1 {
		c := *first
		c.route.Kept = first.route.Kept.Clone()
		trials <- &c
	}
	trials <- first
	var done atomic.Int64
	_, err := par.ForEachWith(ctx, opt.Workers, len(list), func() *trial { return <-trials }, func(t *trial, i int) (err error) {
		r.Cases[i], err = t.try(ctx, &list[i])
		if err == nil && opt.Progress != nil {
			opt.Progress(int(done.Add(1)), len(list))
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	r.Sort("harm")
	return r, nil
}

// trial is the data of one worker.
type trial struct {
	base     *compile.Result
	previous *lft.Routing    // routing of base, to keep if the engine can
	route    compile.Options // for drain.Keep
	scale    bound.Scale
	hosts    *hosts
}

func newTrial(base *compile.Result, route compile.Options, scale bound.Scale) *trial {
	if route.Kept == nil {
		route.Kept = &compile.Kept{CountOnly: true}
	}
	t := &trial{base, base.Routing, route, scale, findHosts(base.Routing)}
	if _, ok := base.Engine.Engine.(lft.IncrementalEngine); ok {
		// As compile --previous does: without the LIDs of virtual ports.
		if len(base.Routing.Fabric.VirtualLIDs()) > 0 {
			physical := *base.Routing
			physical.Fabric = physical.Fabric.WithoutVirtualLIDs()
			t.previous = &physical
		}
		route.Kept.Start(&compile.Result{Engine: base.Engine, Routing: t.previous, Verify: base.Verify})
	}
	return t
}

// try routes and verifies what a failure leaves.
func (t *trial) try(ctx context.Context, x *failure) (Case, error) {
	c := Case{Number: x.number, Failed: x.parts}
	g := t.base.Routing.Fabric.Without(x.cut...)
	err := t.takeSteps(ctx, &c, g)
	if refused, ok := errors.AsType[*lft.DomainError](err); ok {
		c = Case{Number: x.number, Failed: x.parts, RoutedFromScratch: true, Refused: refused.Reason}
		err = nil
	}
	c.Hosts = t.hosts.lost(g, x.cut)
	return c, err
}

// AddGroups adds sums by groups of hosts of set, if not nil: of the fabric of base before any
// failure, and the losses by each failure. base is that of Run. Errors: ctx's.
func (r *Result) AddGroups(ctx context.Context, base *compile.Result, set *groups.Set) (err error) {
	if set == nil {
		return nil
	}
	f := base.Routing.Fabric
	for i := range r.Cases {
		c := &r.Cases[i]
		var cut []fabric.PortID
		for _, p := range c.Failed {
			if n, _ := f.NodeByGUID(p.GUID); p.Port != 0 {
				cut = append(cut, f.Port(n, p.Port))
			} else {
				cut = slices.AppendSeq(cut, f.Cabled(n))
			}
		}
		c.Groups = set.Losses(f.Without(cut...))
	}
	r.Before.Groups, err = set.Measure(ctx, f, base.Routing.Tables)
	return err
}

// withLIDs returns g with LIDs, and those of virtual ports on ports that still have a cable.
func (t *trial) withLIDs(g *fabric.Fabric) (*fabric.Fabric, error) {
	virtual := t.base.Routing.Fabric.VirtualLIDs()
	maps.DeleteFunc(virtual, func(_ fabric.LID, p fabric.PortID) bool { return g.LID(p) == 0 })
	if len(virtual) > 0 { // compile.Run adds those of virtual ports
		return g.WithVirtualLIDs(virtual)
	}
	return lft.AssignLIDs(g, lft.LIDOptions{LMC: lft.KeepLMC}) // once, for all steps
}

// takeSteps routes and verifies g, which a failure leaves, as compile --previous does with
// --first-step and then without.
func (t *trial) takeSteps(ctx context.Context, c *Case, g *fabric.Fabric) error {
	g, err := t.withLIDs(g)
	if err != nil {
		return err
	}
	opt := t.route
	opt.Route.FirstStep = true
	r, err := drain.Keep(ctx, t.base.Engine, g, t.previous, opt)
	if err != nil {
		return err
	}
	t.describe(c, r)
	if c.RoutedFromScratch = !r.Routing.Kept; !c.RoutedFromScratch {
		last := *c
		c.Last = &last.Step
		if !opt.Kept.IsLast(r.Routing, &opt) {
			if r, err = drain.Keep(ctx, t.base.Engine, g, t.previous, t.route); err != nil {
				return err
			}
			t.describe(&last, r)
		}
	}
	return nil
}

// describe sets the figures of c: of the tables after a failure, and of what a subnet manager
// writes.
func (t *trial) describe(c *Case, r *compile.Result) {
	g, v := r.Routing.Fabric, r.Verify
	c.Changes = compile.ChangesSince(t.base.Routing, r.Routing)
	c.Gone = t.base.Verify.Unicast.Pairs - v.Unicast.Pairs
	c.Lost = max(0, v.Unicast.Unreachable+v.Unicast.Loops-t.countUnjoined(g))
	c.CreditLoops = v.CreditLoops.Count + v.Management.CreditLoops
	c.MaxRoutes = v.Balance.MaxRoutes
	if t.scale.Differ {
		c.MaxRelative = v.LoadOn(t.scale)
	}
}

// countUnjoined counts the pairs of g that are in different parts of the whole fabric.
func (t *trial) countUnjoined(g *fabric.Fabric) (n int64) {
	if u := &t.base.Verify.Unicast; u.Unreachable+u.Loops == 0 {
		return 0
	}
	f := t.base.Routing.Fabric
	of := f.Components().Of
	part := func(p fabric.PortID) int32 {
		if s := f.PeerSwitch(p); s != fabric.NoNode {
			return of[s]
		}
		return ^int32(min(p, f.Peer(p))) // two CAs with a cable between them
	}
	ports := make(map[int32]int)
	for _, p := range g.CAPorts() {
		ports[part(p)]++
	}
	for _, p := range g.LIDPorts() {
		if p != fabric.NoPort && !g.IsSwitch(g.Owner(p)) {
			n += int64(len(g.CAPorts()) - ports[part(p)])
		}
	}
	return n
}

// One returns the case of Run for the failure of the cable at a port, or of the switch that has the
// port. If rates of scale differ, relative loads are on it. It is faster with route.Kept. The error
// may be that there is no such part.
func One(ctx context.Context, base *compile.Result, route compile.Options, kind string, at fabric.PortID, scale bound.Scale) (*Case, error) {
	f := base.Routing.Fabric
	if k := route.Kept; k != nil {
		defer func(was bool) { k.CountOnly = was }(k.CountOnly)
		k.CountOnly = true
	}
	for _, x := range listParts(f, &Options{Kind: kind}) {
		if slices.Contains(x.cut, at) {
			c, err := newTrial(base, route, scale).try(ctx, &x)
			return &c, err
		}
	}
	return nil, fmt.Errorf("%s has no cable", f.PortName(at))
}
