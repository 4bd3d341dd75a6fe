package main

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ibweave/ibweave/audit/jobs"
	"github.com/ibweave/ibweave/audit/pages"
	"github.com/ibweave/ibweave/audit/session"
	"github.com/ibweave/ibweave/cmd/cli"
	"github.com/ibweave/ibweave/compile"
	"github.com/ibweave/ibweave/compile/outdir"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/report/page"
	"github.com/ibweave/ibweave/state"
	"github.com/ibweave/ibweave/verify"
)

type reporting struct {
	audit
	readings
	output, svg, png string // files; "" for none
	view             string
	title            string
	entries          int64
	interactive      bool
	compiler         string // file of the compiler for the page; "" for the one in the program
	engines          []string
	cables           string     // value of --cables; "" for the first measure
	jobsFile         *jobs.File // of --traffic; nil for none
}

// reported is a state that report shows.
type reported struct {
	*auditResult
	name  string
	isOld bool // there is a newer state
}

func (a *app) reportCommand() *cobra.Command {
	var r reporting
	cmd := &cobra.Command{
		Use:   "report [DIR | OLD NEW | -t TOPOLOGY [--lfts FILE | --engines A[,B]]]",
		Short: "a page with pictures: the fabric, its paths, loads and findings",
		Args:  a.maxArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := a.resolveReport(&r, args); err != nil {
				return err
			}
			return a.writeReport(cmd.Context(), &r, args)
		},
	}
	flags := cmd.Flags()
	flags.StringVarP(&r.output, "output", "o", "", "page to write, `FILE`; - is standard output")
	flags.StringVar(&r.svg, "svg", "", "write a picture of the view as SVG, `FILE`")
	flags.StringVar(&r.png, "png", "", "write a picture of the view as PNG, `FILE`")
	flags.StringVar(&r.view, "view", "fabric", "`VIEW` of pictures: fabric, path:SRC,DST, fan:DST, group:NAME or credit-loop")
	flags.StringVar(&r.title, "title", "", "`TEXT` above it; by default the name of DIR or TOPOLOGY")
	cli.DefaultNumberFlag(flags, &r.entries, "max-entries", page.DefaultMaxEntries, 1, cli.MaxNumber, "leave forwarding tables with more than `N` entries out of the page, which then shows no paths")
	flags.BoolVar(&r.interactive, "interactive", false, "put the compiler into the page, to try failures, drains and moves by clicks; for tables that compile wrote")
	flags.StringVar(&r.compiler, "compiler", "", "the compiler for the page, `FILE` of cmd/ibweave-page; by default the one in this program, if make built it")
	flags.StringVar(&r.now, "counters", "", "`FILE` of counters of ports, as ibweave counters takes it, to colour links by")
	flags.StringSliceVar(&r.engines, "engines", nil, "route the topology with `ENGINE`, or with two, A,B, to compare")
	flags.StringVar(&r.cables, "cables", "", "cables show `NAME`: routes, bound, trees, choices, a counter, jobs, \"job NAME\" or \"group GROUPING NAME\"")
	flags.StringVar(&r.traffic, "traffic", "", "let cables show the bytes of the jobs of a YAML `FILE` (docs/traffic.md)")
	a.hostGroupFlag(cmd)
	r.readings.flags(flags)
	r.fileFlags(flags)
	r.choiceFlags(flags)
	flags.StringVarP(&r.Groups, "groups", "g", "", "`FILE` of multicast groups, with their MLIDs")
	flags.BoolVar(&r.wiring, "wiring", true, "look at the cables, which report always does")
	flags.Lookup("wiring").Hidden = true
	r.demands.flags(flags)
	a.fabricFlags(cmd)
	cli.Scopes(cmd.Flags(),
		cli.Scope{Flags: "counters host-groups traffic", With: "output cables", Why: "pictures show routes"},
		cli.Scope{Flags: "interactive", With: "output", Why: "pictures take no clicks"},
		cli.Scope{Flags: "compiler", With: "interactive"},
		cli.Scope{Flags: "before seconds", With: "counters"},
		cli.Scope{Flags: "view", With: "svg png", Why: "the page has all views"},
		cli.Scope{Flags: "max-entries", With: "output", Why: "pictures have no tables", Note: true},
		cli.Scope{Flags: "title", With: "output svg png"})
	return cmd
}

// resolveReport validates the flags and finds the files.
func (a *app) resolveReport(r *reporting, args []string) error {
	switch {
	case len(args) == 0 && r.Topology == "":
		return usagef("report needs a directory of tables, or -t TOPOLOGY")
	case len(args) == 2 && (r.HasTables() || r.PLFT != "" || r.SL2VL != "" || r.PathSLs != "" || r.MFTs != "" || r.Groups != ""):
		return usagef("report of two states takes OLD, NEW and -t for the cables of dumps; files of tables would belong to neither")
	case len(r.engines) > 0 && (len(args) > 0 || r.Topology == "" || r.HasTables()):
		return usagef("--engines route a topology: want -t TOPOLOGY without DIR and tables")
	case len(r.engines) > 2:
		return usagef("--engines %s: want one or two", strings.Join(r.engines, ","))
	case len(args) == 1 && (r.Topology != "" || r.HasTables() || r.PLFT != "" || r.SL2VL != "" || r.PathSLs != "" || r.MFTs != "" || r.Groups != ""):
		return usagef("report takes a directory or -t and --lfts, not both")
	case r.output == "" && r.svg == "" && r.png == "":
		return usagef("nothing to write: -o FILE for the page, --svg FILE or --png FILE for a picture")
	}
	if cli.OneStdin(r.output, r.svg, r.png) != nil {
		return usagef("standard output (-) can be one file only")
	}
	if err := cli.OneStdin(r.now, r.before); err != nil {
		return err
	}
	if _, err := page.ParseView(r.view); err != nil {
		return usagef("--view %w", err)
	}
	if r.interactive && len(args) != 1 {
		return usagef("--interactive keeps tables that compile wrote: want DIR")
	}
	if len(args) > 0 {
		r.title = cmp.Or(r.title, filepath.Base(filepath.Clean(args[len(args)-1])))
	} else {
		r.title = cmp.Or(r.title, filepath.Base(r.Topology))
	}
	// Else a fabric could be clean with tables and have errors without them.
	r.wiring = true
	r.TakeCables, r.TakeAdaptive = true, true
	if len(args) == 2 {
		if err := cli.OneStdin(append(args, r.Topology)...); err != nil {
			return err
		}
	} else if len(r.engines) == 0 {
		if err := a.resolveAudit("report", &r.audit, args); err != nil {
			return err
		}
	}
	return a.readPolicy(&r.audit)
}

// writeReport reads, checks and draws.
func (a *app) writeReport(ctx context.Context, r *reporting, args []string) (err error) {
	var compiler []byte
	if r.interactive {
		if compiler, err = a.readCompiler(r.compiler); err != nil {
			return err
		}
	}
	if r.jobsFile, err = a.readJobFile(r.traffic); err != nil {
		return err
	}
	old, x, err := a.readStates(ctx, r, args)
	if err != nil {
		return err
	}
	in, err := a.reportInput(ctx, r, x)
	if err != nil {
		return err
	}
	in.Cables = r.cables
	if old != nil {
		if in.Old, err = a.compareStates(ctx, r, old, x); err != nil {
			return err
		}
	}
	s := a.startStage("draw")
	defer s.End()
	if r.now != "" {
		c, err := a.readCounters(&r.readings, &r.audit, x.Fabric)
		if err != nil {
			return err
		}
		in.Counters = append(in.Counters, colours(c, x.Fabric)...)
	}
	set, err := a.groupsOf(x.Fabric, true)
	if err != nil {
		return err
	}
	in.Groupings = pages.Groupings(set)
	if a.trims(r, in) {
		if in.Base, err = packTables(r, x.auditResult); err != nil {
			return err
		}
		in.Compiler = compiler
	}
	return a.writeFiles(ctx, r, in)
}

// readStates reads or routes the states of the page: now, and old, nil if there is only one.
func (a *app) readStates(ctx context.Context, r *reporting, args []string) (old, now *reported, err error) {
	take := func(x *auditResult, name string) { old, now = now, &reported{x, name, false} }
	switch {
	case len(r.engines) > 0:
		f, err := a.reader(&r.audit).Fabric()
		if err != nil {
			return nil, nil, err
		}
		for _, engine := range r.engines {
			x, err := a.auditEngine(ctx, &r.audit, f, engine)
			if err != nil {
				return nil, nil, err
			}
			take(x, engine)
		}
	case len(args) == 2:
		var states [2]*side
		for i, name := range args {
			if states[i], err = a.openState(name, r.Lenient); err != nil {
				return nil, nil, err
			}
		}
		for i, s := range states {
			x, err := a.auditState(ctx, r, s, states[1-i])
			if err != nil {
				return nil, nil, err
			}
			take(x, filepath.Base(filepath.Clean(s.name)))
		}
		if old.name == now.name {
			old.name, now.name = args[0], args[1]
		}
	default:
		x, err := a.audit(ctx, &r.audit)
		if err != nil {
			return nil, nil, err
		}
		take(x, "")
	}
	return old, now, nil
}

// auditState audits s, OLD or NEW. A dump of tables
// takes the topology of -t, or that of other.
func (a *app) auditState(ctx context.Context, r *reporting, s, other *side) (*auditResult, error) {
	s.demands = r.demands
	switch {
	case s.isDump() && s.kind != state.ForwardingTables:
		return nil, inputf("%s is %s; want a directory, a topology or forwarding tables", s.name, s.kind)
	case s.isDump():
		if s.Topology = cmp.Or(r.Topology, other.Topology); s.Topology == "" {
			return nil, usagef("%s is %s, which does not tell the cables: name the topology, -t FILE", s.name, s.kind)
		}
	}
	return a.audit(ctx, &s.audit)
}

// auditEngine routes a fabric and verifies the tables.
func (a *app) auditEngine(ctx context.Context, in *audit, f *fabric.Fabric, engine string) (*auditResult, error) {
	made, err := a.routeBy(ctx, f, in.Topology, engine, compile.Options{})
	if err != nil {
		return nil, err
	}
	routing := made.Routing
	x := &auditResult{State: state.Of(routing)}
	if x.result, err = a.checkTables(ctx, x.State, x.options); err != nil {
		return nil, err
	}
	if err := a.checkBounds(ctx, in, routing, x.result); err != nil {
		return nil, err
	}
	x.demanded, err = a.checkDemands(ctx, in, x.Fabric, x.Tables, x.result)
	return x, err
}

// named returns the state with the name that the page shows.
func (x *reported) named() *state.State {
	s := *x.State
	s.Name = x.name
	return &s
}

// reportInput returns what the page shows of a state.
func (a *app) reportInput(ctx context.Context, r *reporting, x *reported) (*page.Input, error) {
	in := &page.Input{
		Title: r.title, Version: version, State: x.named(), Result: x.result, Rules: r.rulesOf(), MaxEntries: r.entries,
	}
	if in.Rules == nil {
		in.Rules = verify.Rules
	}
	var err error
	if in.Counters, err = a.cableLoads(ctx, r, x); err != nil && x.name != "" {
		err = fmt.Errorf("%s: %w", x.name, err)
	}
	if err != nil {
		return nil, err
	}
	return in, pages.FindPlaces(in, x.shape)
}

// cableLoads returns the loads that cables can show: of jobs (--traffic) and groups
// (--host-groups). An old state without tables, or without hosts of the jobs, has no loads of jobs.
func (a *app) cableLoads(ctx context.Context, r *reporting, x *reported) (list []page.Counter, err error) {
	if r.traffic == "" && a.hostGroups.name == "" {
		return nil, nil
	}
	switch {
	case x.Tables != nil:
	case r.traffic != "" && x.isOld:
		a.tellNoJobs(x, errors.New("it has no forwarding tables"))
		return nil, nil
	case r.traffic != "":
		return nil, usagef("--traffic needs forwarding tables")
	default: // groups show as boxes only
		return nil, nil
	}
	set, err := a.groupsOf(x.Fabric, true)
	if err != nil {
		return nil, err
	}
	if r.jobsFile != nil {
		switch t, err := r.jobsFile.In(x.Fabric, set); {
		case err != nil && x.isOld:
			a.tellNoJobs(x, err)
		case err != nil:
			return nil, err
		default:
			if list, err = pages.JobLoads(ctx, x.State, t); err != nil {
				return nil, err
			}
		}
	}
	if set == nil {
		return list, nil
	}
	s := a.startStage("count routes of groups")
	defer s.End()
	for i := range set.Groups {
		c, err := pages.GroupLoads(ctx, x.State, &set.Groups[i])
		if err != nil {
			return nil, err
		}
		list = append(list, c)
		s.Set(i+1, len(set.Groups))
	}
	return list, nil
}

// tellNoJobs prints to standard error why a state shows no jobs.
func (a *app) tellNoJobs(x *reported, why error) {
	fmt.Fprintf(a.stderr, "ibweave: %s is without the jobs of --traffic: %v\n", x.name, why)
}

// compareStates returns the old state for the page, and its differences from now.
func (a *app) compareStates(ctx context.Context, r *reporting, old, now *reported) (*page.Old, error) {
	stage := a.startStage("compare")
	defer stage.End()
	o, err := pages.Compare(ctx, old.named(), now.named())
	if err != nil {
		return nil, err
	}
	set, err := a.groupsOf(o.Both.Fabric, true)
	if err != nil {
		return nil, err
	}
	o.Both.Groupings = pages.Groupings(set)
	old.isOld = true
	if o.Input, err = a.reportInput(ctx, r, old); err == nil {
		o.Title = old.name
	}
	return o, err
}

// writeFiles writes the page and the pictures, or none if a view or a measure does not exist.
func (a *app) writeFiles(ctx context.Context, r *reporting, in *page.Input) error {
	var p *page.Picture
	if r.svg != "" || r.png != "" {
		view, err := page.ParseView(r.view) // resolveReport has checked it
		if err == nil {
			p, err = page.Draw(ctx, in, view)
		}
		if err != nil {
			return viewError(r, err)
		}
	}
	if r.output != "" {
		if err := a.writeComplete(r.output, func(w io.Writer) error { return page.Write(ctx, w, in) }); err != nil {
			return viewError(r, err)
		}
	}
	return a.writePictures(r.svg, r.png, p.SVG, p.PNG)
}

// trims prints what a large page leaves out; it returns true if the page gets the compiler.
func (a *app) trims(r *reporting, in *page.Input) bool {
	if in.Tables == nil || r.output == "" {
		return r.interactive
	}
	entries := in.Entries()
	if entries > r.entries {
		fmt.Fprintf(a.stderr, "ibweave: the page is without forwarding tables and paths: they have %s entries, more than --max-entries %s; it shows loads, the heat map and findings\n",
			text.Grouped(entries), text.Grouped(r.entries))
	}
	if r.interactive && entries > min(r.entries, page.MostInteractive) {
		fmt.Fprintf(a.stderr, "ibweave: the page has no compiler: the tables have %s entries, and it tries changes of %s at most\n",
			text.Grouped(entries), text.Grouped(min(r.entries, page.MostInteractive)))
		return false
	}
	return r.interactive
}

// viewError makes wrong usage of views and measures that do not exist.
func viewError(r *reporting, err error) error {
	wrong, ok := errors.AsType[*page.RequestError](err)
	switch {
	case !ok:
		return err
	case wrong.Of == "view":
		return usagef("--view %s: %w", r.view, err)
	}
	return usagef("--cables: %w", err)
}

// pageCompiler is cmd/ibweave-page as WebAssembly, compressed by gzip;
// nil if make did not build this program (compiler_embedded.go).
var pageCompiler []byte

// wasmMagic is the first eight bytes of a WebAssembly module.
var wasmMagic = []byte("\x00asm\x01\x00\x00\x00")

// packTables encodes the compiled tables for the compiler in the page.
func packTables(r *reporting, x *auditResult) ([]byte, error) {
	if r.Compiled == nil {
		return nil, usagef("--interactive keeps tables that compile wrote: want a directory with %s", outdir.ManifestName)
	}
	dir, m := r.Compiled.Path, r.Compiled.Manifest
	if x.result.Verdict == verify.VerdictErrors {
		return nil, inputf("%s: the tables have errors, which ibweave check %s lists; want tables that are safe to begin with, or a page without --interactive", dir, dir)
	}
	e, err := compile.EngineByName(m.Engine)
	if err != nil {
		return nil, inputf("%s: %v", filepath.Join(dir, outdir.ManifestName), err)
	}
	routing := x.Routing()
	routing.Fabric = x.Fabric.WithoutVirtualLIDs()
	data, err := session.Encode(e, routing)
	if err != nil {
		return nil, inputf("%s: --interactive: %w", dir, err)
	}
	return data, nil
}

// readCompiler returns the compiler for pages, compressed by gzip; "" is the embedded one.
func (a *app) readCompiler(name string) ([]byte, error) {
	if name == "" {
		if pageCompiler == nil {
			return nil, usagef("--interactive: this program was built without the compiler for pages, which make puts in; want that, or --compiler FILE, which docs/report.md says how to build")
		}
		return pageCompiler, nil
	}
	data, err := a.readRaw(name)
	if err != nil {
		return nil, err
	}
	head := make([]byte, len(wasmMagic))
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err == nil {
		_, err = io.ReadFull(z, head)
	}
	if err != nil || !bytes.Equal(head, wasmMagic) {
		return nil, inputf("%s: want cmd/ibweave-page as a WebAssembly module that gzip compressed", name)
	}
	return data, nil
}
