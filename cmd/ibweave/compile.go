package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.uber.org/zap"

	"github.com/ibweave/ibweave/audit/cabling"
	"github.com/ibweave/ibweave/audit/choice"
	"github.com/ibweave/ibweave/audit/drain"
	"github.com/ibweave/ibweave/audit/jobs"
	"github.com/ibweave/ibweave/audit/quality"
	"github.com/ibweave/ibweave/cmd/cli"
	"github.com/ibweave/ibweave/compile"
	"github.com/ibweave/ibweave/compile/outdir"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/mesh"
	"github.com/ibweave/ibweave/mft"
	"github.com/ibweave/ibweave/report"
	"github.com/ibweave/ibweave/routing/fattree"
	"github.com/ibweave/ibweave/sminterface/dump"
	"github.com/ibweave/ibweave/state/open"
	"github.com/ibweave/ibweave/verify"
	"github.com/ibweave/ibweave/verify/bound"
)

// defaultInstallDir is where opensm.conf expects the tables.
// It does not depend on the output directory, so that the same
// input gives the same files wherever it is compiled.
const defaultInstallDir = "/etc/opensm/ibweave"

// order has the flags of compile.
type order struct {
	routeFlags
	cli.OutputForm
	bounding
	engine, output string
	guid2lid       string
	esp0           bool
	only           []string
	origin         string
	dims           []int // sizes of a grid; nil to find them
	sl2vl          string
	pathSL         bool
	previous       string
	firstStep      bool
	maxDetour      int
	without        []string // nodes and cables to leave out of the fabric
	traffic        string
	uniformFloor   float64
	adaptive       bool
	groups, mcast  string
	mftCapacity    int
	balance        bool
	dryRun, force  bool
	lean, zstd     bool
	labels         bool
	installDir     string
}

func (a *app) compileCommand() *cobra.Command {
	var o order
	var list bool
	cmd := &cobra.Command{
		Use:   "compile TOPOLOGY [-e ENGINE] -o DIR",
		Short: "make forwarding tables for OpenSM, and prove them",
		Args:  a.topologyArg,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if list {
				if err := errors.Join(cli.WrongValues(cmd)...); err != nil {
					return cli.NewUsageError(err)
				}
				if err := a.sayNotes(cli.CheckScopes(cmd)); err != nil {
					return err
				}
				_, err := io.WriteString(a.stdout, cli.LaidOut(engineItems()))
				return err
			}
			c, err := a.parseOrder(cmd, &o)
			if err != nil {
				return err
			}
			return a.compile(cmd.Context(), c)
		},
	}
	o.flags(cmd.Flags())
	a.fabricFlags(cmd)
	cmd.Flags().StringVar(&a.hostGroups.name, "host-groups", "", "groups of hosts in `FILE` that --without and the jobs of --traffic can name (docs/groups.md)")
	cmd.Flags().BoolVar(&list, "engines", false, "list the engines")
	cli.Scopes(cmd.Flags(),
		cli.Scope{Flags: "uniform-floor", With: "traffic"},
		cli.Scope{Flags: "install-dir labels lean only path-sl zstd", Not: "dry-run", Why: "nothing is written", Note: true},
		cli.Scope{Flags: "host-groups", With: "without traffic", Why: "these name them"},
		cli.Scope{Flags: "adaptive", Not: "groups", Why: "no proof covers multicast packets together with all choices of ports"},
		cli.Scope{Flags: "mcast", With: "groups"},
		cli.Scope{Flags: "first-step rebalance", With: "previous"},
		cli.Scope{Flags: "mcast-balance mft-capacity", With: "groups", Note: true},
		cli.Scope{Flags: "dims origin", With: grids + " lids=mesh groups", Why: "only these look for a mesh", Note: true},
		cli.Scope{Flags: "roots", With: ordered, Why: "other engines have no order of the switches", Note: true})
	return cmd
}

func (o *order) flags(flags *pflag.FlagSet) {
	o.routeFlags.define(flags, "`POLICY` of LIDs: keep those that there are and fill the gaps; dense, all new from 1; or mesh, by coordinates",
		"; for fattree they are those of the highest level")
	o.defineEngine(flags, &o.engine)
	o.OutputForm.Define(flags, "summary")
	o.bounding.flags(flags)
	flags.StringVarP(&o.output, "output", "o", "", "`DIR` to write")
	flags.StringVar(&o.guid2lid, "guid2lid", "", "LIDs to keep, from a guid2lid `FILE` of OpenSM")
	flags.BoolVar(&o.esp0, "lmc-esp0", false, "enhanced switch ports 0 have the LMC too, as with OpenSM's lmc_esp0")
	flags.StringVar(&o.previous, "previous", "", "keep what a change of the fabric does not touch of the tables in `DIR`, which compile wrote with the same engine")
	flags.StringArrayVar(&o.without, "without", nil, "make tables as if the cables of a `NODE`, of a GROUP of --host-groups with the leaves that only it uses, or the cable at NODE:PORT, were not there; may be repeated")
	flags.BoolVar(&o.firstStep, "first-step", false, "of --previous, change as little as the plugin does at once: --rebalance comes later")
	cli.NumberFlag(flags, &o.maxDetour, "max-detour", 0, cli.MaxNumber,
		"paths between hosts may pass `N` switches more than shortest ones, 0 for none; an engine that needs more is refused; by default as many as it needs")
	flags.StringVar(&o.traffic, "traffic", "", "make tables for what the jobs of a YAML `FILE` send (docs/traffic.md), as far as the engine leaves a choice of ports")
	cli.DefaultNumberFlag(flags, &o.uniformFloor, "uniform-floor", lft.DefaultUniformFloor, 1, maxRebalance,
		"with --traffic no link gets more than `F` times the greatest load that routes of all hosts to all have without it, F from 1 on")
	flags.StringVar(&o.origin, "origin", "", "`GUID` of the switch at coordinates 0,0 of a mesh; by default the corner that docs/dev/meshes.md names")
	cli.ParsedFlag(flags, &o.dims, "dims", "", "sizes of the dimensions of a mesh, in order, `SIZES` such as 16x16; by default as found", mesh.ParseDims)
	cli.WordFlag(flags, &o.sl2vl, "sl2vl", "`SCHEME` of the SL-to-VL tables: "+strings.Join(compile.SL2VLSchemes, ", ")+"; by default what the engine needs", compile.SL2VLSchemes...)
	flags.BoolVar(&o.pathSL, "path-sl", false, "also write the SL of each path as ibdmchk reads it, a line for each pair")
	flags.BoolVar(&o.adaptive, "adaptive", false,
		"also make adaptive tables: every switch gets the largest groups of ports that leave the tables proven; OpenSM cannot load them")
	flags.StringVarP(&o.groups, "groups", "g", "", "`FILE` of multicast groups: YAML, JSON, groups.json, or what saquery -m prints")
	cli.WordFlag(flags, &o.mcast, "mcast", "multicast `SCHEME`: "+compile.MulticastSchemeNames()+"; by default region on banyan networks, elsewhere union for groups with one sender, and for others union-row on meshes or updn-tree, and the next one where the check refuses that", strings.Split(compile.MulticastSchemeNames(), ", ")...)
	cli.NumberFlag(flags, &o.mftCapacity, "mft-capacity", 1, mft.NumMLIDs,
		"multicast LIDs that a switch's table has, `N` from 0xc000 on (MulticastFDBCap); by default all there are")
	flags.BoolVar(&o.balance, "mcast-balance", false, "divide multicast trees over links")
	flags.BoolVar(&o.dryRun, "dry-run", false, "do everything but writing")
	flags.BoolVar(&o.force, "force", false, "write tables with errors, too, and an "+outdir.ConfigName+" that cannot bring in all VLs and SLs")
	flags.BoolVar(&o.labels, "labels", false, "keep the labels of ports in fabric.ibnetdiscover, which ibsim cannot load then")
	flags.BoolVar(&o.lean, "lean", false, "leave the comments out of dumps")
	flags.BoolVar(&o.zstd, "zstd", false, "compress the dumps of tables, which check, diff and the others read as they are, and OpenSM unpacked")
	flags.StringSliceVar(&o.only, "only", nil, "write the tables of these switches only: `GUID,..`")
	flags.StringVar(&o.installDir, "install-dir", defaultInstallDir, "absolute `PATH` of the files in "+outdir.ConfigName)
}

// summary is the JSON document of compile.
type summary struct {
	Version string            `json:"version"`
	Engine  string            `json:"engine"`
	Top     *verify.SwitchRef `json:"top,omitempty"` // first switch in the order of an up*/down* engine
	LIDs    choice.LIDs       `json:"lids"`
	Notes   []string          `json:"notes"` // what the engine has to say about the fabric
	Lanes   choice.Lanes      `json:"lanes"`
	Output  string            `json:"output"` // "" when nothing was written
	Files   []string          `json:"files"`
	// Install has the commands that install the tables as static files or, if these are
	// not enough, with the plugin. InstallPlugin has those that make the plugin route.
	Install       []string          `json:"install"`
	InstallPlugin []string          `json:"install_plugin"`
	Undo          []string          `json:"undo"` // commands that undo Install or InstallPlugin
	Seconds       compile.Seconds   `json:"seconds"`
	Groups        []mft.Entry       `json:"groups"`
	Trees         *choice.Trees     `json:"multicast,omitempty"`
	Adaptive      *compile.Adaptive `json:"adaptive,omitempty"` // with --adaptive
	Changes       *changeSummary    `json:"changes,omitempty"`  // with --previous
	Traffic       *jobs.FitSummary  `json:"traffic,omitempty"`  // with --traffic, if the jobs send something
	Verify        *verify.Result    `json:"verify"`
	choice.Judgement
}

// changeSummary counts what a subnet manager that has the tables of Previous must write.
type changeSummary struct {
	Previous string `json:"previous"`
	compile.Changes
	MaxRoutes int64 `json:"max_routes_per_link_before"`
}

// compilation is an order, and what was made of it so far.
type compilation struct {
	*order
	engine   *compile.Engine // nil before it is chosen
	choice   *choice.Choice  // nil if the engine was given
	opt      compile.Options
	fabric   *fabric.Fabric // as read, without the parts of --without
	only     []fabric.NodeID
	previous *before       // nil without --previous
	traffic  *jobs.Fitting // nil without --traffic
	result   *compile.Result
}

// before has the tables of the directory of --previous.
type before struct {
	routing  *lft.Routing
	manifest string // SHA-256 of the manifest
}

// parseOrder checks the flags; its error has all that is wrong with them.
func (a *app) parseOrder(cmd *cobra.Command, o *order) (*compilation, error) {
	c := &compilation{order: o}
	var wrong []error // all that is wrong with the flags, the engine first
	var err error
	if o.engine != "" {
		c.engine, err = a.engine(o.engine)
		wrong = append(wrong, err)
	}
	if o.topology == "" {
		wrong = append(wrong, usagef("compile needs a topology, -t FILE or FILE alone"))
	}
	if (o.output == "") != o.dryRun {
		wrong = append(wrong, usagef("compile needs either a directory to write, -o DIR, or --dry-run"))
	}
	wrong = append(wrong, cli.WrongValues(cmd)...)
	notes, idle := cli.CheckScopes(cmd)
	wrong = append(wrong, idle)
	c.opt, err = o.routeFlags.parse(cmd)
	wrong = append(wrong, err)
	if !filepath.IsAbs(o.installDir) {
		wrong = append(wrong, usagef("--install-dir %q: want an absolute path", o.installDir))
	}
	if o.origin != "" {
		if c.opt.Route.Origin, err = fabric.ParseGUID(o.origin); err != nil {
			wrong = append(wrong, usagef("--origin: %w", err))
		}
	}
	c.opt.Route.Dims, c.opt.SL2VL, c.opt.Multicast = o.dims, o.sl2vl, o.mcast
	c.opt.MFT = mft.Options{Capacity: o.mftCapacity, Balance: o.balance}
	if cmd.Flags().Changed("max-detour") {
		c.opt.MaxDetour = &o.maxDetour
	}
	c.opt.Route.FirstStep, c.opt.UniformFloor = o.firstStep, o.uniformFloor
	c.opt.LIDs.EnhancedPort0 = o.esp0
	if o.guid2lid != "" && c.opt.LIDs.Policy != lft.KeepLIDs {
		wrong = append(wrong, usagef("--guid2lid gives LIDs to keep, and --lids %s keeps none", o.lids))
	}
	wrong = append(wrong, cli.OneStdin(append([]string{o.topology, o.guid2lid, o.groups, o.traffic}, o.roots...)...))
	if err := errors.Join(wrong...); err != nil {
		return nil, cli.NewUsageError(err)
	}
	return c, a.sayNotes(notes, nil)
}

// compile reads, routes, verifies, writes, and prints the summary.
func (a *app) compile(ctx context.Context, c *compilation) error {
	start := time.Now()
	if err := a.readOrdered(c); err != nil {
		return err
	}
	// Collect what reading left now: then routing begins in memory that the
	// system has given already, and no collection falls into the middle of it.
	runtime.GC()
	read := time.Since(start).Seconds()
	if err := a.runOrdered(ctx, c); err != nil {
		return err
	}
	c.result.Seconds.Read = read
	s, err := c.summarize(ctx)
	if err != nil {
		return err
	}
	stage := a.startStage("compare")
	s.Judgement, err = choice.Judge(ctx, c.result, c.choice)
	stage.End()
	if err != nil {
		return err
	}
	failed := c.result.Verify.Fails(verify.Error)
	if !c.dryRun && (!failed || c.force) {
		if err := a.writeTables(ctx, c, s); err != nil {
			return err
		}
	}
	s.Seconds = c.result.Seconds
	return cmp.Or(c.Print(a.stdout, s, func(b *text.Sheet) { s.text(b, c) }), cli.FindingsIf(failed))
}

// readOrdered reads the fabric and all other files that the flags name.
func (a *app) readOrdered(c *compilation) (err error) {
	opt := &c.opt
	if err := a.readHostGroups(); err != nil {
		return err
	}
	if c.fabric, err = a.readFabric(&c.routeFlags, "so there are no tables to make"); err != nil {
		return err
	}
	if c.guid2lid != "" {
		if opt.LIDs.GUID2LID, err = a.readGUID2LID(c.guid2lid, c.lenient); err != nil {
			return err
		}
	}
	set, err := a.groupsOf(c.fabric, true)
	if err != nil {
		return err
	}
	if c.fabric, err = drain.Without(c.fabric, c.order.without, set); err != nil {
		return usagef("--without %w", err)
	}
	file, err := a.readJobFile(c.order.traffic)
	if err != nil {
		return err
	}
	if c.traffic = a.fitting(file); c.traffic != nil {
		c.opt.Demand = demandOf(c.traffic)
	}
	if err := a.setRoots(c.fabric, c.roots, &opt.Route); err != nil {
		return err
	}
	if c.order.previous != "" {
		if c.previous, err = a.readPrevious(c); err != nil {
			return err
		}
	}
	if c.only, err = a.switches(c.fabric, "--only", c.order.only); err != nil {
		return err
	}
	if c.groups == "" {
		return nil
	}
	groups, err := a.readInput(c.groups)
	opt.Groups = func(f *fabric.Fabric) ([]mft.Group, error) {
		list, problems, err := open.ReadGroups(c.groups, groups, f, dump.Options{Lenient: c.lenient})
		a.dumpProblems(problems, c.lenient)
		return list, err
	}
	return err
}

// readPrevious reads the directory of --previous, and takes its engine if
// none was given. A fabric without any LID gets the LIDs of that directory.
func (a *app) readPrevious(c *compilation) (*before, error) {
	dir := c.order.previous
	if len(c.roots) > 0 {
		return nil, usagef("--previous keeps the order of the switches, and --roots gives another")
	}
	if c.opt.LIDs.Policy != lft.KeepLIDs {
		return nil, usagef("--previous keeps entries, which --lids %s gives to other ports", c.lids)
	}
	in := newAudit(c.lenient, false)
	err := in.Directory(dir)
	if err != nil {
		return nil, err
	}
	m := in.Compiled.Manifest
	if c.engine == nil {
		if c.engine, err = compile.EngineByName(m.Engine); err != nil {
			return nil, inputf("%s: %v", filepath.Join(dir, outdir.ManifestName), err)
		}
	}
	if m.Engine != c.engine.Name() {
		return nil, inputf("%s is of engine %s, not %s", dir, m.Engine, c.engine.Name())
	}
	if _, ok := c.engine.Engine.(lft.IncrementalEngine); !ok {
		return nil, usagef("--previous: %s makes all tables from scratch", c.engine.Name())
	}
	manifest, err := a.readInput(filepath.Join(dir, outdir.ManifestName))
	if err != nil {
		return nil, err
	}
	b := &before{manifest: open.Sum(manifest)}
	if b.routing, err = a.readCompiledRouting(in); err != nil {
		return nil, err
	}
	c.opt.Route.Previous = b.routing
	if c.guid2lid == "" && c.fabric.MaxLID() == 0 {
		c.opt.LIDs.GUID2LID, err = a.readGUID2LID(filepath.Join(dir, outdir.GUID2LIDName), c.lenient)
	}
	return b, err
}

// readGUID2LID reads a guid2lid file, in which OpenSM keeps LIDs.
func (a *app) readGUID2LID(name string, lenient bool) ([]lft.LIDRange, error) {
	data, err := a.readInput(name)
	if err != nil {
		return nil, err
	}
	ranges, problems, err := dump.ReadGUID2LID(name, data, dump.Options{Lenient: lenient})
	if err != nil {
		return nil, err
	}
	a.dumpProblems(problems, lenient)
	return ranges, nil
}

// runOrdered routes, verifies and seeks bounds; c gets the result.
func (a *app) runOrdered(ctx context.Context, c *compilation) (err error) {
	size := fabricSize(c.fabric)
	label := func(stage string) string { return stage + " " + size }
	var r *compile.Result
	if c.engine == nil {
		r, err = a.routeChosen(ctx, c, label)
	} else {
		r, err = a.runEngine(ctx, c.fabric, c.engine, c.opt, label)
	}
	groups, wrongGroups := errors.AsType[*compile.GroupError](err)
	switch {
	case cli.Is[*mesh.NotGridError](err):
		return err
	case wrongGroups && isRefused(err):
		return fmt.Errorf("%s: %w", c.groups, groups.Err)
	case wrongGroups:
		return inputf("%s: %w", c.groups, groups.Err)
	case err != nil:
		return lidInput(c.topology, err)
	}
	if c.adaptive {
		stage := a.startStage(label("adaptive"))
		err = r.AddChoices(ctx)
		stage.End()
		if err != nil {
			return err
		}
	}
	a.Log.Info("routed", zap.String("engine", c.engine.Name()), zap.Float64("seconds", r.Seconds.Route))
	r.Verify.Add(cabling.SlowLinks(r.Routing.Fabric)...)
	// Tables cannot mend a cable.
	r.Verify.Regrade(cabling.LinkDegraded, verify.Warning)
	a.Log.Info("verified", zap.String("verdict", r.Verify.Verdict), zap.Float64("seconds", r.Seconds.Verify))
	var jobs *bound.Bound
	if r.Fit != nil {
		c.traffic.Bound, jobs = r.Fit.Bound, r.Fit.Bound
	}
	bounds, err := c.bounding.find(ctx, a, r.Routing, r.Verify, jobs)
	if err != nil {
		return err
	}
	r.Verify.CompareBounds(bounds...)
	c.result = r
	return nil
}

// routeChosen routes with the engine that suits the fabric best.
func (a *app) routeChosen(ctx context.Context, c *compilation, label func(stage string) string) (*compile.Result, error) {
	s := a.startStage(label("choose an engine for"))
	found, r, err := choice.Choose(ctx, c.fabric, c.opt)
	s.End()
	if err != nil {
		return nil, err
	}
	c.engine, c.choice = r.Engine, found
	if c.opt.Groups == nil && c.opt.Demand == nil {
		return r, nil
	}
	return a.runEngine(ctx, c.fabric, c.engine, c.opt, label)
}

func (c *compilation) summarize(ctx context.Context) (s *summary, err error) {
	r := c.result
	s = &summary{
		Version: version, Engine: c.engine.Name(), Top: choice.Top(r.Routing), Notes: append([]string{}, r.Routing.Notes...),
		LIDs: choice.CountLIDs(c.fabric, r.Routing.Fabric, c.lids), Lanes: choice.LanesOf(r), Trees: choice.TreesOf(r), Adaptive: r.Adaptive,
		Files: []string{}, Install: []string{}, InstallPlugin: []string{}, Undo: []string{}, Groups: []mft.Entry{},
		Verify: r.Verify,
	}
	if r.Plan != nil {
		s.Notes = append(s.Notes, r.Plan.Notes...)
		if s.Groups, err = mft.Entries(r.Routing.Fabric, r.Plan.Trees); err != nil {
			return nil, inputf("%s: %w", c.groups, err)
		}
	}
	if s.Traffic, err = c.traffic.Summarize(ctx, r); err != nil {
		return nil, err
	}
	if p := c.previous; p != nil {
		q, err := quality.Measure(ctx, p.routing.Fabric, p.routing.Tables, quality.Options{})
		if err != nil {
			return nil, err
		}
		s.Changes = &changeSummary{Previous: c.order.previous, Changes: compile.ChangesSince(p.routing, r.Routing), MaxRoutes: q.Links.Max}
	}
	return s, nil
}

func (a *app) writeTables(ctx context.Context, c *compilation, s *summary) error {
	r := c.result
	w := outdir.Options{
		InstallDir: c.installDir, Lean: c.lean, Labels: c.labels, Zstd: c.zstd, Only: c.only, PairSLs: c.pathSL, Force: c.force,
		Options: c.manifestOptions(r.Routing.Fabric, c.opt, s.LIDs.LMC),
	}
	if c.previous != nil {
		w.Previous = c.previous.manifest
	}
	if r.Fit != nil {
		w.Options["traffic"], w.Options["uniform-floor"] = true, c.uniformFloor
	}
	stage := a.startStage("write " + c.output)
	start := time.Now()
	names, err := outdir.Write(ctx, c.output, r, w)
	r.Seconds.Write = time.Since(start).Seconds()
	stage.End()
	if err != nil {
		return err
	}
	s.Output, s.Files = c.output, names
	plugin, static, undo := outdir.InstallCommands(c.output, names, w)
	if plugin != nil {
		s.Install, s.InstallPlugin = plugin, plugin
	}
	if static != nil {
		s.Install = static
	}
	if len(s.Install) > 0 {
		s.Undo = undo
	}
	a.Log.Info("written", zap.String("directory", c.output), zap.Float64("seconds", r.Seconds.Write))
	return nil
}

// manifestOptions returns, for the manifest, the options on which the tables depend.
func (o *order) manifestOptions(f *fabric.Fabric, opt compile.Options, lmc uint8) map[string]any {
	m := map[string]any{"lids": o.lids, "lmc": lmc, "roots": text.Each(opt.Route.Roots, func(s fabric.NodeID) fabric.GUID { return f.Node(s).GUID })}
	set := func(given bool, name string, value any) {
		if given {
			m[name] = value
		}
	}
	set(opt.Route.Balanced, "roots", balancedRoots)
	set(o.origin != "", "origin", opt.Route.Origin)
	set(o.dims != nil, "dims", o.dims)
	set(o.noWrap, "no-wrap", true)
	set(o.repair, "repair", true)
	set(o.vls != 0, "vls", o.vls)
	set(o.rebalance != lft.DefaultRebalance, "rebalance", o.rebalance)
	set(opt.MaxDetour != nil, "max-detour", o.maxDetour)
	set(o.firstStep, "first-step", true)
	set(len(o.without) > 0, "without", o.without)
	set(o.sl2vl != "", "sl2vl", o.sl2vl)
	set(o.adaptive, "adaptive", true)
	set(o.groups != "", "mcast", o.mcast)
	set(o.groups != "", "mft-capacity", o.mftCapacity)
	set(o.groups != "", "mcast-balance", o.balance)
	return m
}

func (s *summary) printInstall(b *text.Sheet) {
	if len(s.InstallPlugin) == 0 {
		return
	}
	engine := s.Engine
	static := slices.Contains(s.Files, outdir.ConfigName)
	if static {
		b.WriteString(`
These files are static: when a cable fails, pairs that used it stay unreachable
until you compile again. OpenSM with the plugin (docs/install.md) routes again,
with ibweave-` + engine + `.
`)
	} else {
		b.WriteString(`
OpenSM needs the plugin (docs/install.md) to route so; it routes again when the
fabric changes, with ibweave-` + engine + `.
`)
	}
	b.WriteString(`The commands add lines to the site's opensm.conf; its other options stay. On
the host of the subnet manager:
`)
	for _, c := range s.InstallPlugin {
		fmt.Fprintf(b, "    %s\n", c)
	}
	b.WriteString("This brings back what there was:\n")
	for _, c := range s.Undo {
		fmt.Fprintf(b, "    %s\n", c)
	}
	if static {
		fmt.Fprintf(b, "For the static files, add %s instead of %s, and\nwatch them from cron: ibweave drift DIR --umad mlx5_0 --summary\n",
			outdir.ConfigName, outdir.PluginOpenSMName)
	}
}

func (s *summary) text(b *text.Sheet, c *compilation) {
	b.Row("engine", "%s: %s", c.engine.Name(), c.engine.Summary)
	s.Judgement.Print(b)
	if t := s.Top; t != nil {
		hint := "; --roots chooses others"
		if c.engine.Name() == (fattree.Engine{}).Name() {
			hint = "" // fattree puts the highest level on top
		}
		b.Row("order", "%q on top, %s%s", t.Name.Text, t.Switch, hint)
	}
	for i, note := range s.Notes {
		b.Row([]string{"notes", ""}[min(i, 1)], "%s", note)
	}
	b.Row("LIDs", "%s: %s kept, %s new, LMC %d", s.LIDs.Policy, text.Grouped(s.LIDs.Kept), text.Grouped(s.LIDs.Given), s.LIDs.LMC)
	if l := s.Lanes; l.SL2VL {
		own := ""
		if l.PathSLs {
			own = ", each path with the SL of " + outdir.PathSLsName
		}
		b.Row("lanes", "%s by SL-to-VL tables%s", text.CountGrouped(l.VLs, "VL", "VLs"), own)
		if l.PathSLs && l.PluginOnly == "" {
			b.Row("", "the plugin gives paths these SLs; with OpenSM's file engine all have one, and so one VL")
		}
		if l.PluginOnly != "" {
			b.Row("", "plugin only: %s", l.PluginOnly)
		}
	}
	if s.Trees != nil {
		s.Trees.Print(b)
	}
	if x := s.Adaptive; x != nil { // how much choice the switches have
		b.Row("choices", "%s of %s entries to other switches have a choice, of %.1f ports in the mean and %d at most",
			text.Grouped(x.Adaptive), text.Grouped(x.Entries), x.Ports, x.Widest)
		b.Row("", "at most %s in a switch; a group table has %s by default", text.CountGrouped(x.MaxGroups, "group", "groups"), text.Grouped(x.Limit))
		b.Row("", "OpenSM cannot load them: %s is the plan, and for check and sim", outdir.FARName)
	}
	if s.Traffic != nil {
		s.Traffic.Print(b)
	}
	if x := s.Changes; x != nil {
		b.Row("changes", "%s in %s of %d on %s since %s, where the most loaded link had %s", text.CountGrouped(x.Entries, "entry", "entries"),
			text.CountGrouped(x.Blocks, "block", "blocks"), lft.BlockSize, text.CountGrouped(x.Switches, "switch", "switches"), x.Previous, text.CountGrouped(x.MaxRoutes, "route", "routes"))
	}
	// A buffer never fails.
	_ = report.Text(b, s.Verify, report.Options{Tables: c.topology, Shape: choice.OneLine{Shape: s.Shape}, Lines: s.Judgement.Lines()})
	s.printFiles(b, c)
	seconds := fmt.Sprintf("read %.3f, route %.3f, ", s.Seconds.Read, s.Seconds.Route)
	if s.Trees != nil {
		seconds += fmt.Sprintf("multicast %.3f, ", s.Seconds.Multicast)
	}
	b.Row("seconds", "%sverify %.3f, write %.3f", seconds, s.Seconds.Verify, s.Seconds.Write)
	if !s.Verify.Fails(verify.Error) {
		s.printInstall(b)
	}
}

func (s *summary) printFiles(b *text.Sheet, c *compilation) {
	switch {
	case c.dryRun:
		b.Row("files", "none, as --dry-run says")
	case s.Output == "":
		b.Row("files", "none, because of the errors; --force writes them all the same")
	default:
		b.Row("files", "%s/", strings.TrimSuffix(s.Output, "/"))
		for _, name := range s.Files {
			size := int64(0)
			if info, err := os.Stat(filepath.Join(s.Output, name)); err == nil {
				size = info.Size()
			}
			fmt.Fprintf(b, "%13s%-26s %11s bytes\n", "", name, text.Grouped(size))
		}
	}
}
