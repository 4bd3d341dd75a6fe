package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ibweave/ibweave/compile"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/report"
	"github.com/ibweave/ibweave/verify"
	"github.com/ibweave/ibweave/whatif"
)

// shownCases is how many failures the text form names.
const shownCases = 20

func (a *app) whatifCommand() *cobra.Command {
	var (
		o                    order
		opt                  whatif.Options
		fail, shard          string
		format, failOn, file string
		top                  int
	)
	cmd := &cobra.Command{
		Use:   "whatif -t FILE -e ENGINE --fail links|switches",
		Short: "what every single failure would do",
		Long: `Let every cable or every switch of a fabric fail, one at a time or two together,
route what is left, verify it, and list the failures by the harm that they do:
pairs of ports that cannot reach each other any more, though both still have a
cable (so that what failed is a single point of failure); credit loops; pairs that
lost a port with its only cable; the load of the most loaded link; the forwarding
entries that a subnet manager has to write, and in how many blocks of 64.

updn and minhop mend their tables, so that what the failure did not touch stays as
it is; other engines route all anew. Where failures are many, --sample draws some,
and --shard divides them among machines: merge puts the results together.

Lost pairs are warnings, and credit loops that were not there before are errors.`,
		Example: `  ibweave whatif -t fabric.txt -e updn --fail links
  ibweave whatif -t fabric.txt -e updn --fail switches --depth 2 --sample 10000
  ibweave whatif -t fabric.txt -e updn --fail links --depth 2 --shard 3/16 -o part-3.json
  ibweave merge part-*.json`,
		Args: a.noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.topology == "" || o.engine == "" || fail == "" {
				return usagef("whatif needs a topology, -t FILE, an engine, -e ENGINE, and what fails, --fail links or switches")
			}
			if err := opt.Kind.UnmarshalText([]byte(fail)); err != nil {
				return usagef("--fail %w", err)
			}
			if opt.Depth != 1 && opt.Depth != 2 {
				return usagef("--depth %d: want 1 or 2", opt.Depth)
			}
			if opt.Sample < 0 {
				return usagef("--sample %d: want 1 or more", opt.Sample)
			}
			if shard != "" {
				i, n, ok := strings.Cut(shard, "/")
				var err1, err2 error
				opt.Shard, err1 = strconv.Atoi(i)
				opt.Shards, err2 = strconv.Atoi(n)
				if !ok || err1 != nil || err2 != nil || opt.Shard < 1 || opt.Shard > opt.Shards {
					return usagef("--shard %q: want i/n, i from 1 to n", shard)
				}
			}
			if !cmd.Flags().Changed("lmc") {
				o.lmc = lft.KeepLMC
			} else if o.lmc < 0 || o.lmc > fabric.MaxLMC {
				return usagef("--lmc %d: want 0 to %d", o.lmc, fabric.MaxLMC)
			}
			out, err := parseCaseForm(format, file, failOn, top)
			if err != nil {
				return err
			}
			r, err := a.whatif(cmd.Context(), &o, opt)
			if err != nil {
				return err
			}
			return a.writeCases(r, out)
		},
	}
	flags := cmd.Flags()
	flags.StringVarP(&o.topology, "topology", "t", "", "topology `FILE`; - is standard input")
	flags.StringVarP(&o.engine, "engine", "e", "", "routing `ENGINE`")
	flags.StringVar(&fail, "fail", "", "what fails: links or switches")
	flags.IntVar(&opt.Depth, "depth", 1, "how many fail together: 1 or 2")
	flags.IntVar(&opt.Sample, "sample", 0, "try `N` failures drawn at random; by default all")
	flags.Uint64Var(&opt.Seed, "seed", 1, "chooses the sample")
	flags.StringVar(&shard, "shard", "", "try part `i/n` of the failures only")
	flags.StringSliceVar(&o.roots, "roots", nil, "switches on top of the up*/down* order, highest first: `GUID,..` or a file with a GUID a line")
	flags.StringVar(&o.lids, "lids", "keep", "LIDs: keep, dense or mesh, as in compile")
	flags.IntVar(&o.lmc, "lmc", 0, "each CA port answers to 2^`N` LIDs, N from 0 to 7; by default as the ports have it")
	flags.BoolVar(&o.noWrap, "no-wrap", false, "leave the cables that close the rings of a torus unused")
	flags.BoolVar(&o.repair, "repair", false, "xy: route around missing cables and switches of a mesh")
	flags.IntVar(&o.vls, "vls", 0, "data VLs that ports have: `N` is 1, 2, 4, 8 or 15; by default what the engine needs")
	flags.BoolVar(&o.lenient, "lenient", false, "leave out of the input what is broken, and list it")
	caseFlags(cmd, &format, &file, &failOn, &top)
	return cmd
}

// caseFlags are those of whatif and merge.
func caseFlags(cmd *cobra.Command, format, file, failOn *string, top *int) {
	flags := cmd.Flags()
	flags.StringVar(format, "format", "text", "text or json")
	flags.StringVarP(file, "output", "o", "", "also write the result as JSON to `FILE`, as a whole or not at all")
	flags.StringVar(failOn, "fail-on", "error", "exit with 1 for findings from this severity on: error, warning, note or never")
	flags.IntVar(top, "top", shownCases, "failures to name in the text, `N`, the worst first")
}

// caseForm is where results of whatif go.
type caseForm struct {
	json  bool
	file  string
	at    verify.Severity
	never bool
	top   int
}

func parseCaseForm(format, file, failOn string, top int) (f caseForm, err error) {
	if format != "text" && format != "json" {
		return f, usagef("--format %q: want text or json", format)
	}
	if top < 0 {
		return f, usagef("--top %d: want 0 or more", top)
	}
	f = caseForm{json: format == "json", file: file, top: top}
	f.at, f.never, err = parseFailOn(failOn)
	return f, err
}

// whatif routes the fabric and has it fail.
func (a *app) whatif(ctx context.Context, o *order, opt whatif.Options) (*whatif.Result, error) {
	engine, err := compile.EngineByName(o.engine)
	if err != nil {
		return nil, &usageError{err}
	}
	route := compile.Options{LIDs: lft.LIDOptions{LMC: o.lmc}}
	if route.LIDs.Policy, err = lft.ParseLIDPolicy(o.lids); err != nil {
		return nil, usagef("--lids: %w", err)
	}
	if o.vls != 0 {
		if err := lft.CheckVLCount(o.vls); err != nil {
			return nil, usagef("--vls: %w", err)
		}
	}
	route.Route.NoWrap, route.Route.Repair, route.Route.VLs = o.noWrap, o.repair, o.vls
	if err := oneStdin(append([]string{o.topology}, o.roots...)...); err != nil {
		return nil, err
	}
	f, err := a.readTopology(o.topology, o.lenient)
	if err != nil {
		return nil, err
	}
	if f.NumSwitches() == 0 {
		return nil, inputf("%s has no switch, so that nothing can fail", o.topology)
	}
	if route.Route.Roots, err = a.switches(f, "--roots", o.roots); err != nil {
		return nil, err
	}
	base, err := compile.Run(ctx, f, engine, route)
	var lids *compile.LIDError
	if errors.As(err, &lids) {
		return nil, inputf("%s: %w", o.topology, err)
	}
	if err != nil {
		return nil, err
	}
	s := a.startStage("failures", 0)
	defer s.end()
	opt.Progress = func(done, total int) { s.set(done, total) }
	r, err := whatif.Run(ctx, base, route, opt)
	if err != nil {
		return nil, err
	}
	r.Version = version
	r.Options = o.manifestOptions(base.Routing.Fabric, route, countLIDs(f, base.Routing.Fabric, o.lids).LMC)
	return r, nil
}

func (a *app) mergeCommand() *cobra.Command {
	var (
		format, failOn, file string
		top                  int
	)
	cmd := &cobra.Command{
		Use:   "merge FILE..",
		Short: "put the shards of whatif together",
		Long: `Put the results of whatif --shard together: the same, byte for byte, as one run
without shards. All shards must be of the same run, and each there once.`,
		Example: `  ibweave merge part-*.json -o all.json`,
		Args:    cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usagef("merge needs the files that whatif --shard wrote")
			}
			out, err := parseCaseForm(format, file, failOn, top)
			if err != nil {
				return err
			}
			if err := oneStdin(args...); err != nil {
				return err
			}
			var results []*whatif.Result
			for _, name := range args {
				data, err := a.readInput(name)
				if err != nil {
					return err
				}
				r, err := whatif.Read(name, data)
				if err != nil {
					return err
				}
				results = append(results, r)
			}
			r, err := whatif.Merge(args, results)
			if err != nil {
				return &inputError{err}
			}
			return a.writeCases(r, out)
		},
	}
	caseFlags(cmd, &format, &file, &failOn, &top)
	return cmd
}

// writeCases writes a result where it is wanted, and says whether it is bad.
func (a *app) writeCases(r *whatif.Result, out caseForm) error {
	var b bytes.Buffer
	if out.json || out.file != "" {
		if err := report.JSON(&b, r); err != nil {
			return err
		}
	}
	if out.file != "" {
		if err := a.writeOutput(out.file, b.Bytes()); err != nil {
			return err
		}
	}
	if !out.json {
		b.Reset()
		printCases(&b, r, out.top)
	}
	if _, err := a.stdout.Write(b.Bytes()); err != nil {
		return err
	}
	worst := verify.Clean
	for i := range r.Cases {
		switch c := &r.Cases[i]; {
		case c.Refused != "" || c.CreditLoops > r.Before.CreditLoops:
			worst = max(worst, verify.Error)
		case c.Lost > 0:
			worst = max(worst, verify.Warning)
		}
	}
	if !out.never && worst >= out.at {
		return errFindings
	}
	return nil
}

// printCases is the text for people.
func printCases(b *bytes.Buffer, r *whatif.Result, top int) {
	row := func(name, format string, args ...any) {
		fmt.Fprintf(b, "%-15s"+format+"\n", append([]any{name}, args...)...)
	}
	var lost, gone, refused, loops, anew int
	var busiest int64
	mean := 0.0
	most := 0
	for i := range r.Cases {
		c := &r.Cases[i]
		if c.Lost > 0 {
			lost++
		}
		if c.Gone > 0 {
			gone++
		}
		if c.Refused != "" {
			refused++
		}
		busiest = max(busiest, c.MaxRoutes)
		if c.CreditLoops > r.Before.CreditLoops {
			loops++
		}
		if c.Anew {
			anew++
		}
		mean += float64(c.Blocks) / float64(len(r.Cases))
		most = max(most, c.Blocks)
	}
	what := map[whatif.Kind][2]string{whatif.Links: {"cable", "cables"}, whatif.Switches: {"switch", "switches"}}[r.Fail]
	each := "every " + what[0]
	if r.Depth == 2 {
		each = "every two " + what[1]
	}
	if r.Sample > 0 && r.Sample == r.Failures {
		each = fmt.Sprintf("a sample with seed %d of %s", r.Seed, each)
	}
	text := fmt.Sprintf("%s: %s", each, plural(len(r.Cases), "failure", "failures"))
	if r.Shard != "" {
		text += fmt.Sprintf(", shard %s of %s", r.Shard, report.Grouped(int64(r.Failures)))
	}
	row("failures", "%s", text)
	row("engine", "%s", r.Engine)
	row("before", "%s pairs, %s unreachable; %s; at most %s routes on a link", report.Grouped(r.Before.Pairs), report.Grouped(r.Before.Unreachable),
		plural(r.Before.CreditLoops, "credit loop", "credit loops"), report.Grouped(r.Before.MaxRoutes))
	row("single points", "%s", plural(lost, "failure separates ports", "failures separate ports")+" that still have a cable")
	row("own cables", "%s", plural(gone, "failure takes the only cable of a port", "failures take the only cable of a port"))
	row("credit loops", "%s", plural(loops, "failure brings one", "failures bring one"))
	if refused > 0 {
		row("refused", "%s", plural(refused, "failure leaves a fabric that the engine cannot do", "failures leave fabrics that the engine cannot do"))
	}
	row("load", "at most %s routes on a link", report.Grouped(busiest))
	row("to write", "%.1f blocks of 64 entries on average, at most %s", mean, report.Grouped(int64(most)))
	if anew > 0 {
		row("", "%s routed anew, not mended", plural(anew, "failure", "failures"))
	}
	if len(r.Cases) == 0 || top == 0 {
		return
	}
	fmt.Fprintln(b)
	rows := [][]string{{"lost", "loops", "gone", "most", "blocks", "entries", ""}}
	for i := range r.Cases[:min(top, len(r.Cases))] {
		c := &r.Cases[i]
		names := make([]string, len(c.Failed))
		for k, p := range c.Failed {
			names[k] = p.String()
		}
		if c.Refused != "" {
			rows = append(rows, []string{"-", "-", "-", "-", "-", "-", strings.Join(names, " and ") + ": " + c.Refused})
			continue
		}
		n := func(n int64) string { return report.Grouped(n) }
		rows = append(rows, []string{
			n(c.Lost), strconv.Itoa(c.CreditLoops), n(c.Gone), n(c.MaxRoutes), n(int64(c.Blocks)), n(int64(c.Entries)), strings.Join(names, " and "),
		})
	}
	writeColumns(b, rows, len(rows[0])-1)
	if left := len(r.Cases) - top; left > 0 {
		fmt.Fprintf(b, "and %s, see --top and --format json\n", plural(left, "failure that does less harm", "failures that do less harm"))
	}
}
