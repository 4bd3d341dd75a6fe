package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"go.uber.org/zap"

	"github.com/ibweave/ibweave/audit/cabling"
	"github.com/ibweave/ibweave/audit/quality"
	"github.com/ibweave/ibweave/compile"
	"github.com/ibweave/ibweave/compile/outdir"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/mesh"
	"github.com/ibweave/ibweave/mft"
	"github.com/ibweave/ibweave/mft/groupfile"
	"github.com/ibweave/ibweave/report"
	"github.com/ibweave/ibweave/routing/fattree"
	"github.com/ibweave/ibweave/sminterface/dump"
	"github.com/ibweave/ibweave/verify"
)

// defaultInstallDir is where opensm.conf expects the tables. It does not
// follow the output directory, so that the same input gives the same files
// wherever it is compiled.
const defaultInstallDir = "/etc/opensm/ibweave"

// order is what compile is asked to do.
type order struct {
	topology, engine, output string
	lids, guid2lid           string
	lmc                      int
	esp0                     bool
	roots, only              []string
	origin, dims             string
	noWrap, repair           bool
	vls                      int
	sl2vl                    string
	pathSL                   bool
	previous                 string
	groups, mcast            string
	mftCapacity              int
	balance                  bool
	lenient, dryRun, force   bool
	lean, zstd               bool
	installDir               string
	json                     bool
}

func (a *app) compileCommand() *cobra.Command {
	var (
		o      order
		format string
		list   bool
	)
	cmd := &cobra.Command{
		Use:   "compile -t FILE -e ENGINE -o DIR",
		Short: "make forwarding tables for OpenSM, and prove them",
		Long: `Make the forwarding tables of a fabric, prove them safe, and write what OpenSM
needs to use them.

FILE is ibnetdiscover text or opensm-subnet.lst; zstd and gzip are recognized.
DIR gets OpenSM's own kinds of files, the fabric with its LIDs, the proof that
there is no credit loop, and a manifest:
  opensm-lfts.dump  opensm-lid-matrix.dump  guid2lid  opensm.conf
  opensm.fdbs  opensm-subnet.lst  fabric.ibnetdiscover
  certificate.txt  manifest.json
and the orders of the switches and of the hosts where the engine has them:
  switch-order  opensm-ftree-ca-order.dump
and where paths need virtual lanes:
  opensm-sl2vl.dump  path-sls.dump
and with multicast groups:
  opensm.mcfdbs  mfts.dump  groups.json  partitions.conf

It appears as a whole: a crash leaves the old DIR or the new one. With errors in
the tables nothing is written, unless --force says so.

Engines:
` + engineHelp() + `
Multicast schemes, --mcast:
` + schemeHelp(),
		Example: `  ibweave compile -t fabric.txt -e updn -o tables
  ibweave compile -t fabric.txt -e updn --lids dense --lmc 1 --dry-run
  ibweave compile -t changed.txt -e updn --previous tables -o tables.new
  ibweave compile -t mesh.txt -e xy -g groups.yaml --mcast comb -o tables
  ibnetdiscover | ibweave compile -t - -e minhop -o tables --format json`,
		Args: a.noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if list {
				_, err := io.WriteString(a.stdout, engineHelp())
				return err
			}
			switch format {
			case "text":
			case "json":
				o.json = true
			default:
				return usagef("--format %q: want text or json", format)
			}
			if !cmd.Flags().Changed("lmc") {
				o.lmc = lft.KeepLMC
			} else if o.lmc < 0 || o.lmc > fabric.MaxLMC {
				return usagef("--lmc %d: want 0 to %d", o.lmc, fabric.MaxLMC)
			}
			return a.compile(cmd.Context(), &o)
		},
	}
	flags := cmd.Flags()
	flags.StringVarP(&o.topology, "topology", "t", "", "topology `FILE`; - is standard input")
	flags.StringVarP(&o.engine, "engine", "e", "", "routing `ENGINE`")
	flags.StringVarP(&o.output, "output", "o", "", "`DIR` to write")
	flags.StringVar(&o.lids, "lids", "keep", "LIDs: keep those there are and fill the gaps; dense, all new from 1; or mesh, by coordinates")
	flags.StringVar(&o.guid2lid, "guid2lid", "", "LIDs to keep, from a guid2lid `FILE` of OpenSM")
	flags.IntVar(&o.lmc, "lmc", 0, "each CA port answers to 2^`N` LIDs, N from 0 to 7; by default as the ports have it")
	flags.BoolVar(&o.esp0, "lmc-esp0", false, "enhanced switch ports 0 have the LMC too, as with OpenSM's lmc_esp0")
	flags.StringSliceVar(&o.roots, "roots", nil, "switches on top of the up*/down* order, highest first, for fattree those of the highest level: `GUID,..` or a file with a GUID a line")
	flags.StringVar(&o.previous, "previous", "", "keep what a change of the fabric does not touch of the tables in `DIR`, which compile wrote with the same engine")
	flags.StringVar(&o.origin, "origin", "", "`GUID` of the switch at coordinates 0,0 of a mesh; by default the corner that docs/meshes.md says")
	flags.StringVar(&o.dims, "dims", "", "sizes of the dimensions of a mesh, in order, such as `16x16`; by default as found")
	flags.BoolVar(&o.noWrap, "no-wrap", false, "leave the cables that close the rings of a torus unused")
	flags.BoolVar(&o.repair, "repair", false, "xy: route around missing cables and switches of a mesh")
	flags.IntVar(&o.vls, "vls", 0, "data VLs that ports have: `N` is 1, 2, 4, 8 or 15; by default what the engine needs")
	flags.StringVar(&o.sl2vl, "sl2vl", "", "`SCHEME` of the SL-to-VL tables: "+strings.Join(compile.SL2VLSchemes, ", ")+"; by default what the engine needs")
	flags.BoolVar(&o.pathSL, "path-sl", false, "also write the SL of each path as ibdmchk reads it, a line for each pair")
	flags.StringVarP(&o.groups, "groups", "g", "", "`FILE` of multicast groups: YAML, JSON, groups.json, or what saquery -m prints")
	flags.StringVar(&o.mcast, "mcast", "", "multicast `SCHEME`: "+schemeNames()+"; by default region on banyan networks, elsewhere union for groups with one sender, and for others union-row on meshes or updn-tree, and the next one where the check refuses that")
	flags.IntVar(&o.mftCapacity, "mft-capacity", 0, "multicast LIDs that a switch's table has, `N` from 0xc000 on (MulticastFDBCap); by default all there are")
	flags.BoolVar(&o.balance, "mcast-balance", false, "divide multicast trees over links")
	a.nameFlag(cmd)
	flags.BoolVar(&o.lenient, "lenient", false, "leave out of the input what is broken, and list it")
	flags.BoolVar(&o.dryRun, "dry-run", false, "do everything but writing")
	flags.BoolVar(&o.force, "force", false, "write tables with errors, too, and an "+outdir.ConfigName+" that cannot bring in all VLs and SLs")
	flags.BoolVar(&o.lean, "lean", false, "leave the comments out of dumps")
	flags.BoolVar(&o.zstd, "zstd", false, "compress the dumps of tables, which check, diff and the others read as they are, and OpenSM unpacked")
	flags.StringSliceVar(&o.only, "only", nil, "write the tables of these switches only: `GUID,..`")
	flags.StringVar(&o.installDir, "install-dir", defaultInstallDir, "absolute `PATH` of the files in "+outdir.ConfigName)
	flags.StringVar(&format, "format", "text", "form of the summary, text or json")
	flags.BoolVar(&list, "engines", false, "list the engines")
	return cmd
}

// engineHelp lists the engines with their domains and guarantees.
func engineHelp() string {
	var b strings.Builder
	for i := range compile.Engines {
		e := &compile.Engines[i]
		name := e.Name()
		if len(e.Aliases) > 0 {
			name += " (" + strings.Join(e.Aliases, ", ") + ")"
		}
		fmt.Fprintf(&b, "  %-14s %s\n%17sfor %s; guarantees: %s\n", name, e.Summary, "", e.Domain, e.Promise())
	}
	return b.String()
}

// summary is the JSON document of compile.
type summary struct {
	Version string      `json:"version"`
	Engine  string      `json:"engine"`
	Top     *topSwitch  `json:"top,omitempty"` // of the order of an up*/down* engine
	LIDs    lidSummary  `json:"lids"`
	Notes   []string    `json:"notes"` // what the engine has to say about the fabric
	Lanes   laneSummary `json:"lanes"`
	Output  string      `json:"output"` // "" when nothing was written
	Files   []string    `json:"files"`
	// Install are the commands that bring the tables in as static files, or by the plugin
	// where files cannot carry them; InstallPlugin those that have the plugin route.
	Install       []string        `json:"install"`
	InstallPlugin []string        `json:"install_plugin"`
	Seconds       compile.Seconds `json:"seconds"`
	Groups        []mft.Entry     `json:"groups"`
	Trees         *treeSummary    `json:"multicast,omitempty"`
	Changes       *changeSummary  `json:"changes,omitempty"` // with --previous
	Verify        *verify.Result  `json:"verify"`
}

// changeSummary is what a subnet manager with the tables of a directory has to write.
type changeSummary struct {
	Previous string `json:"previous"`
	compile.Changes
	MaxRoutes int64 `json:"max_routes_per_link_before"`
}

type topSwitch struct {
	Switch fabric.GUID `json:"switch"`
	Name   fabric.Name `json:"name"`
}

// top finds the switch on top of a routing's order; nil where there is none.
func top(r *lft.Routing) *topSwitch {
	s := slices.Index(r.Order, 0)
	if s < 0 {
		return nil
	}
	n := fabric.NodeID(s)
	return &topSwitch{Switch: r.Fabric.Node(n).GUID, Name: r.Fabric.Name(n)}
}

// laneSummary says what virtual lanes paths take, and how that gets into a
// fabric.
type laneSummary struct {
	VLs        int    `json:"vls"`         // data VLs in use
	SL2VL      bool   `json:"sl2vl"`       // whether there are SL-to-VL tables
	PathSLs    bool   `json:"path_sls"`    // whether paths need SLs of their own
	PluginOnly string `json:"plugin_only"` // why OpenSM's options cannot carry them; "" when they can
}

func lanesOf(r *compile.Result) laneSummary {
	s := laneSummary{VLs: 1, SL2VL: r.Routing.SL2VL != nil, PathSLs: r.Routing.PathSLs != nil}
	if s.SL2VL {
		s.VLs = r.Routing.SL2VL.VLs()
	}
	if _, err := outdir.QoSOptions(r); err != nil {
		s.PluginOnly = err.Error()
	}
	return s
}

// treeSummary is what multicast costs when every sender sends one packet. Links are
// those between switches, each direction apart.
type treeSummary struct {
	Groups     int            `json:"groups"`
	MLIDs      int            `json:"mlids"`
	Links      int64          `json:"links"` // cables in all trees together
	MaxLinks   int            `json:"max_links"`
	MaxDepth   int            `json:"max_depth"`            // links on the longest way
	MaxCopies  int64          `json:"max_copies_per_link"`  // on the most loaded link
	MeanCopies float64        `json:"mean_copies_per_link"` // over all links of the fabric
	HostCopies int64          `json:"max_copies_per_host"`  // that one end port gets
	Crossings  int64          `json:"link_crossings"`
	Unicast    int64          `json:"unicast_link_crossings"` // with a unicast packet from each sender to each receiver
	Hottest    *verify.Hop    `json:"max_link,omitempty"`
	ByScheme   map[string]int `json:"trees_by_scheme"`
	Unserved   []string       `json:"unserved,omitempty"` // groups without an MLID, left to repeated unicast
}

// text says how many trees of which scheme there are.
func (s *treeSummary) text() string {
	said := fmt.Sprintf("%s on %s", text.CountGrouped(s.Groups, "group", "groups"), text.CountGrouped(s.MLIDs, "MLID", "MLIDs"))
	for i, name := range slices.Sorted(maps.Keys(s.ByScheme)) {
		separator := ", "
		if i == 0 {
			separator = ": "
		}
		said += fmt.Sprintf("%s%s %s", separator, text.Grouped(s.ByScheme[name]), name)
	}
	return said
}

func treesOf(r *compile.Result) *treeSummary {
	if r.Plan == nil {
		return nil
	}
	c, f := r.Cost, r.Routing.Fabric
	s := &treeSummary{
		MLIDs: len(r.Plan.Tables.MLIDs()), Links: c.Links, MaxCopies: c.MaxLink, MeanCopies: c.MeanLink, HostCopies: c.MaxHost,
		Crossings: c.Crossings, Unicast: c.Unicast, ByScheme: make(map[string]int),
	}
	groups := make(map[int]bool)
	for i := range r.Plan.Trees {
		t := &r.Plan.Trees[i]
		groups[t.Group] = true
		s.ByScheme[t.Scheme]++
		s.MaxLinks, s.MaxDepth = max(s.MaxLinks, c.Trees[i].Links), max(s.MaxDepth, c.Trees[i].Depth)
	}
	s.Groups = len(groups)
	for _, i := range r.Plan.Unserved {
		s.Unserved = append(s.Unserved, r.Groups[i].Name)
	}
	if p := c.Hottest; p != fabric.NoPort {
		n := f.Owner(p)
		s.Hottest = &verify.Hop{Switch: f.Node(n).GUID, Name: f.Name(n), Port: f.Num(p)}
	}
	return s
}

type lidSummary struct {
	Policy string     `json:"policy"`
	LMC    uint8      `json:"lmc"`
	Kept   int        `json:"kept"`  // end ports that had their LID before
	Given  int        `json:"given"` // end ports with a new LID
	Max    fabric.LID `json:"max"`
}

// compile is the command.
func (a *app) compile(ctx context.Context, o *order) error {
	if o.topology == "" || o.engine == "" {
		return usagef("compile needs a topology, -t FILE, and an engine, -e ENGINE")
	}
	if (o.output == "") != o.dryRun {
		return usagef("compile needs either a directory to write, -o DIR, or --dry-run")
	}
	engine, err := compile.EngineByName(o.engine)
	if err != nil {
		return &usageError{err}
	}
	if !filepath.IsAbs(o.installDir) {
		return usagef("--install-dir %q: want an absolute path", o.installDir)
	}
	opt := compile.Options{LIDs: lft.LIDOptions{LMC: o.lmc, EnhancedPort0: o.esp0}}
	if opt.LIDs.Policy, err = lft.ParseLIDPolicy(o.lids); err != nil {
		return usagef("--lids: %w", err)
	}
	if o.dims != "" {
		if opt.Route.Dims, err = parseDims(o.dims); err != nil {
			return &usageError{err}
		}
	}
	if o.origin != "" {
		if opt.Route.Origin, err = fabric.ParseGUID(o.origin); err != nil {
			return usagef("--origin: %w", err)
		}
	}
	opt.Route.NoWrap, opt.Route.Repair, opt.Route.VLs = o.noWrap, o.repair, o.vls
	if o.vls != 0 {
		if err := lft.CheckVLCount(o.vls); err != nil {
			return usagef("--vls: %w", err)
		}
	}
	if opt.SL2VL = o.sl2vl; o.sl2vl != "" {
		if err := compile.CheckSL2VLScheme(o.sl2vl); err != nil {
			return usagef("--sl2vl: %w", err)
		}
	}
	if o.mcast != "" {
		if err := compile.CheckMulticastScheme(o.mcast); err != nil {
			return usagef("--mcast: %w", err)
		}
	}
	if o.mftCapacity < 0 || o.mftCapacity > mft.NumMLIDs {
		return usagef("--mft-capacity %d: want 1 to %d", o.mftCapacity, mft.NumMLIDs)
	}
	opt.Multicast, opt.MFT = o.mcast, mft.Options{Capacity: o.mftCapacity, Balance: o.balance}
	if o.guid2lid != "" && opt.LIDs.Policy != lft.KeepLIDs {
		return usagef("--guid2lid gives LIDs to keep, and --lids %s keeps none", o.lids)
	}

	if err := oneStdin(append([]string{o.topology, o.guid2lid, o.groups}, o.roots...)...); err != nil {
		return err
	}

	start := time.Now()
	f, err := a.readTopology(o.topology, o.lenient)
	if err != nil {
		return err
	}
	if f.NumSwitches() == 0 {
		return inputf("%s has no switch, so there are no tables to make", o.topology)
	}
	if o.guid2lid != "" {
		if opt.LIDs.GUID2LID, err = a.readGUID2LID(o.guid2lid, o.lenient); err != nil {
			return err
		}
	}
	if opt.Route.Roots, err = a.switches(f, "--roots", o.roots); err != nil {
		return err
	}
	var previous *before
	if o.previous != "" {
		if previous, err = a.readPrevious(o, engine, f, &opt); err != nil {
			return err
		}
	}
	only, err := a.switches(f, "--only", o.only)
	if err != nil {
		return err
	}
	if o.groups != "" {
		text, err := a.readInput(o.groups)
		if err != nil {
			return err
		}
		opt.Groups = func(f *fabric.Fabric) ([]mft.Group, error) {
			groups, _, err := a.parseGroups(o.groups, text, f, o.lenient)
			return groups, err
		}
	}
	read := time.Since(start).Seconds()

	stage := a.startStage("", 0)
	opt.Stage = func(name string) {
		stage.end()
		stage = a.startStage(name+" "+fabricSize(f), 0)
	}
	opt.Progress = func(done, total int) { stage.set(done, total) }
	r, err := compile.Run(ctx, f, engine, opt)
	stage.end()
	var (
		lidError *compile.LIDError
		notGrid  *mesh.NotGridError
	)
	if errors.As(err, &lidError) && !errors.As(err, &notGrid) {
		return inputf("%s: %w", o.topology, err)
	}
	var groups *compile.GroupError
	if errors.As(err, &groups) {
		var refused *mft.RefusedError
		var budget *mft.BudgetError
		if errors.As(err, &refused) || errors.As(err, &budget) {
			return fmt.Errorf("%s: %w", o.groups, groups.Err)
		}
		return inputf("%s: %w", o.groups, groups.Err)
	}
	if err != nil {
		return err
	}
	r.Seconds.Read = read
	a.log.Info("routed", zap.String("engine", engine.Name()), zap.Float64("seconds", r.Seconds.Route))
	r.Verify.Add(cabling.SlowLinks(r.Routing.Fabric, verify.DefaultFindings)...)
	a.log.Info("verified", zap.String("verdict", r.Verify.Verdict), zap.Float64("seconds", r.Seconds.Verify))

	s := summary{
		Version: version, Engine: engine.Name(), Top: top(r.Routing), LIDs: countLIDs(f, r.Routing.Fabric, o.lids), Lanes: lanesOf(r),
		Notes: append([]string{}, r.Routing.Notes...), Files: []string{}, Install: []string{}, InstallPlugin: []string{}, Groups: []mft.Entry{}, Trees: treesOf(r), Verify: r.Verify,
	}
	if r.Plan != nil {
		s.Notes = append(s.Notes, r.Plan.Notes...)
		if s.Groups, err = mft.Entries(r.Routing.Fabric, r.Plan.Trees); err != nil {
			return inputf("%s: %w", o.groups, err)
		}
	}
	if previous != nil {
		s.Changes = &changeSummary{Previous: o.previous, Changes: compile.ChangesSince(previous.routing, r.Routing)}
		q, err := quality.Measure(ctx, previous.routing.Fabric, previous.routing.Tables, quality.Options{Bisections: -1})
		if err != nil {
			return err
		}
		s.Changes.MaxRoutes = q.Links.Max
	}
	failed := r.Verify.Fails(verify.Error)
	if !o.dryRun && (!failed || o.force) {
		w := outdir.Options{
			Previous: previous.sum(), InstallDir: o.installDir, Lean: o.lean, Zstd: o.zstd, Only: only, PairSLs: o.pathSL, Force: o.force,
			Options: o.manifestOptions(r.Routing.Fabric, opt, s.LIDs.LMC),
		}
		stage := a.startStage("write "+o.output, 0)
		start := time.Now()
		s.Files, err = outdir.Write(ctx, o.output, r, w)
		r.Seconds.Write = time.Since(start).Seconds()
		stage.end()
		if err != nil {
			return err
		}
		s.Output = o.output
		plugin, static := outdir.InstallCommands(o.output, s.Files, w)
		if plugin != nil {
			s.Install, s.InstallPlugin = plugin, plugin
		}
		if static != nil {
			s.Install = static
		}
		a.log.Info("written", zap.String("directory", o.output), zap.Float64("seconds", r.Seconds.Write))
	}
	s.Seconds = r.Seconds
	if o.json {
		err = report.JSON(a.stdout, &s)
	} else {
		err = a.printSummary(&s, o, engine)
	}
	if err != nil {
		return err
	}
	if failed {
		return errFindings
	}
	return nil
}

// manifestOptions are the options that decide what a result is.
func (o *order) manifestOptions(f *fabric.Fabric, opt compile.Options, lmc uint8) map[string]any {
	roots := []fabric.GUID{}
	for _, s := range opt.Route.Roots {
		roots = append(roots, f.Node(s).GUID)
	}
	m := map[string]any{"lids": o.lids, "lmc": lmc, "roots": roots}
	if o.origin != "" {
		m["origin"] = opt.Route.Origin
	}
	if o.dims != "" {
		m["dims"] = opt.Route.Dims
	}
	for name, on := range map[string]bool{"no-wrap": o.noWrap, "repair": o.repair} {
		if on {
			m[name] = true
		}
	}
	if o.vls != 0 {
		m["vls"] = o.vls
	}
	if o.sl2vl != "" {
		m["sl2vl"] = o.sl2vl
	}
	if o.groups != "" {
		m["mcast"], m["mft-capacity"], m["mcast-balance"] = o.mcast, o.mftCapacity, o.balance
	}
	return m
}

// parseGroups reads multicast groups in any form.
func (a *app) parseGroups(name string, text []byte, f *fabric.Fabric, lenient bool) ([]mft.Group, []dump.Problem, error) {
	if dump.Recognize(text) != dump.SAQuery {
		groups, err := groupfile.Parse(name, text, f)
		return groups, nil, err
	}
	groups, problems, err := dump.ReadSAQuery(name, text, f, dump.Options{Lenient: lenient})
	a.dumpProblems(problems, lenient)
	return groups, problems, err
}

// schemeHelp lists the multicast schemes.
func schemeHelp() string {
	var b strings.Builder
	for _, s := range compile.MulticastSchemes {
		fmt.Fprintf(&b, "  %-15s%s\n", s.Name, s.Summary)
	}
	return b.String()
}

func schemeNames() string {
	var names []string
	for _, s := range compile.MulticastSchemes {
		names = append(names, s.Name)
	}
	return strings.Join(names, ", ")
}

// readGUID2LID reads OpenSM's cache of LIDs.
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

// switches finds switches by GUID. A list of one entry that is no GUID names
// a file with a GUID a line, as OpenSM's root_guid_file; # begins a comment.
func (a *app) switches(f *fabric.Fabric, flag string, list []string) ([]fabric.NodeID, error) {
	if len(list) == 1 {
		if _, err := fabric.ParseGUID(list[0]); err != nil {
			return a.switchFile(f, list[0])
		}
	}
	var found []fabric.NodeID
	for _, text := range list {
		s, err := findSwitch(f, text)
		if err != nil {
			return nil, &inputError{fmt.Errorf("%s: %w", flag, err)}
		}
		found = append(found, s)
	}
	return found, nil
}

func (a *app) switchFile(f *fabric.Fabric, name string) ([]fabric.NodeID, error) {
	data, err := a.readInput(name)
	if err != nil {
		return nil, err
	}
	var found []fabric.NodeID
	number := 0
	for line := range bytes.Lines(data) {
		number++
		text, _, _ := strings.Cut(strings.TrimRight(string(line), "\r\n"), "#")
		if text = strings.TrimSpace(text); text == "" {
			continue
		}
		s, err := findSwitch(f, text)
		if err != nil {
			return nil, &fabric.ParseError{File: name, Line: number, Text: text, Err: err}
		}
		found = append(found, s)
	}
	if len(found) == 0 {
		return nil, inputf("%s has no GUID", name)
	}
	return found, nil
}

func findSwitch(f *fabric.Fabric, text string) (fabric.NodeID, error) {
	g, err := fabric.ParseGUID(text)
	if err != nil {
		return 0, err
	}
	s, ok := f.SwitchByGUID(g)
	if !ok {
		return 0, fmt.Errorf("the fabric has no switch with GUID %s", g)
	}
	return s, nil
}

// countLIDs compares the LIDs of g with those that f had.
func countLIDs(f, g *fabric.Fabric, policy string) lidSummary {
	s := lidSummary{Policy: policy, Max: g.MaxLID()}
	g.EndPorts(func(p fabric.PortID) {
		if g.LID(p) == f.LID(p) {
			s.Kept++
		} else {
			s.Given++
		}
		s.LMC = max(s.LMC, g.LMC(p))
	})
	return s
}

// seconds is how long each stage took.
func seconds(s *summary) string {
	text := fmt.Sprintf("read %.3f, route %.3f, ", s.Seconds.Read, s.Seconds.Route)
	if s.Trees != nil {
		text += fmt.Sprintf("multicast %.3f, ", s.Seconds.Multicast)
	}
	return text + fmt.Sprintf("verify %.3f, write %.3f", s.Seconds.Verify, s.Seconds.Write)
}

// printInstall says how the tables come into OpenSM.
func (s *summary) printInstall(b *bytes.Buffer) {
	if len(s.InstallPlugin) == 0 {
		return
	}
	static := slices.Contains(s.Files, outdir.ConfigName)
	if static {
		b.WriteString(`
These files are static: when a cable fails, pairs that used it stay unreachable until
you compile again. OpenSM with the plugin (docs/install.md) routes again by itself.
`)
	} else {
		b.WriteString(`
OpenSM needs the plugin (docs/install.md) to route so; it routes again by itself when
the fabric changes.
`)
	}
	b.WriteString(`The commands add lines to the site's opensm.conf, and its other options stay. On the
host of the subnet manager:
`)
	for _, c := range s.InstallPlugin {
		fmt.Fprintf(b, "    %s\n", c)
	}
	if static {
		fmt.Fprintf(b, "For the static files, add %s instead of %s.\n", outdir.ConfigName, outdir.PluginOpenSMName)
	}
}

// printSummary is the summary for people.
func (a *app) printSummary(s *summary, o *order, e *compile.Engine) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%-13s%s: %s\n", "engine", e.Name(), e.Summary)
	if t := s.Top; t != nil {
		hint := "; --roots chooses others"
		if e.Name() == (fattree.Engine{}).Name() {
			hint = "" // there they are the switches of the highest level
		}
		fmt.Fprintf(&b, "%-13s%q on top, %s%s\n", "order", t.Name.Text, t.Switch, hint)
	}
	for i, note := range s.Notes {
		name := ""
		if i == 0 {
			name = "notes"
		}
		fmt.Fprintf(&b, "%-13s%s\n", name, note)
	}
	fmt.Fprintf(&b, "%-13s%s: %s kept, %s new, LMC %d\n", "LIDs", s.LIDs.Policy,
		text.Grouped(s.LIDs.Kept), text.Grouped(s.LIDs.Given), s.LIDs.LMC)
	row := func(name, value string) { fmt.Fprintf(&b, "%-13s%s\n", name, value) }
	if l := s.Lanes; l.SL2VL {
		said := text.CountGrouped(l.VLs, "VL", "VLs") + " by SL-to-VL tables"
		if l.PathSLs {
			said += ", each path with the SL of " + outdir.PathSLsName
		}
		row("lanes", said)
		if l.PluginOnly != "" {
			row("", "plugin only: "+l.PluginOnly)
		}
	}
	if t := s.Trees; t != nil {
		row("trees", t.text())
		row("", fmt.Sprintf("at most %s in a tree, and %d from a sender to a receiver", text.CountGrouped(t.MaxLinks, "link", "links"), t.MaxDepth))
		load := fmt.Sprintf("each sender once: %s link crossings, %s with unicast", text.Grouped(t.Crossings), text.Grouped(t.Unicast))
		if t.Hottest != nil {
			load += fmt.Sprintf("; %s on the most loaded link, %s", text.CountGrouped(t.MaxCopies, "copy", "copies"), t.Hottest)
		}
		row("", load)
	}
	if c := s.Changes; c != nil {
		row("changes", fmt.Sprintf("%s in %s of %d on %s since %s, where the most loaded link had %s", text.CountGrouped(c.Entries, "entry", "entries"),
			text.CountGrouped(c.Blocks, "block", "blocks"), lft.BlockSize, text.CountGrouped(c.Switches, "switch", "switches"), c.Previous, text.CountGrouped(c.MaxRoutes, "route", "routes")))
	}
	if err := report.Text(&b, s.Verify, report.Options{}); err != nil {
		return err
	}
	failed := s.Verify.Fails(verify.Error)
	switch {
	case o.dryRun:
		row("files", "none, as --dry-run says")
	case s.Output == "":
		row("files", "none, because of the errors; --force writes them all the same")
	default:
		row("files", strings.TrimSuffix(s.Output, "/")+"/")
		for _, name := range s.Files {
			size := int64(0)
			if info, err := os.Stat(filepath.Join(s.Output, name)); err == nil {
				size = info.Size()
			}
			fmt.Fprintf(&b, "%13s%-26s %11s bytes\n", "", name, text.Grouped(size))
		}
	}
	row("seconds", seconds(s))
	if !failed {
		s.printInstall(&b)
	}
	_, err := a.stdout.Write(b.Bytes())
	return err
}
