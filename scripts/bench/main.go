// Command bench measures ibweave against the programs that do the same work
// on real fabrics, in one run on one machine, turn by turn:
//
//   - routing and verification by ibweave compile --dry-run, as it says in its
//     seconds, against OpenSM's own engine, from "building routing with" to
//     "tables configured" in its log at -D 0x07, where it writes no dumps;
//     OpenSM does not verify;
//   - the audit of OpenSM's dumps, as whole processes that read the text,
//     against ibdmchk;
//   - a failure and its repair with the last result in memory;
//   - the plugin's ibweave-updn, by the time inside its callbacks that it logs,
//     against OpenSM's updn, beside an engine that does nothing.
//
// Fabrics are 3-level fat trees and meshes with a host on each switch, which are
// routed by dimension-order routing. Medians of -runs are printed, with the least
// and the greatest, and the ratio of the medians.
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/ibweave/ibweave/compile"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/topology"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/sminterface/ibsim"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		if !errors.Is(err, flag.ErrHelp) {
			fmt.Fprintln(os.Stderr, "bench:", err)
		}
		os.Exit(1)
	}
}

// bench is one run of the program.
type bench struct {
	out     io.Writer
	program string // ibweave
	library string // the plugin
	runs    int    // of each program
}

func run(ctx context.Context, args []string, out io.Writer) error {
	b := &bench{out: out}
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.IntVar(&b.runs, "runs", 5, "runs of each program")
	flags.StringVar(&b.program, "ibweave", "bin/ibweave", "the program")
	flags.StringVar(&b.library, "library", "bin/libibweave-opensm.so", "the plugin")
	engines := flags.String("engines", "updn,minhop", "engines for -route that both have or that have a counterpart, such as dfsssp, with commas")
	only := flags.String("only", "", "measure this only, with commas: route, mesh, audit, plugin")
	measurements := []struct {
		name, of, usage string
		measure         func(which string) error
		which           *string
	}{
		{name: "route", of: "24", usage: "radixes to route, with commas; 36 takes OpenSM a minute a run",
			measure: func(which string) error { return b.route(ctx, which, strings.Split(*engines, ",")) }},
		{name: "mesh", of: "30x30", usage: "meshes to route with dor, with commas",
			measure: func(which string) error { return b.route(ctx, which, []string{"dor"}) }},
		{name: "audit", of: "20", usage: "radixes to audit, with commas",
			measure: func(which string) error { return b.audit(ctx, which) }},
		{name: "plugin", of: "24", usage: "radixes to route with OpenSM's plugin, with commas",
			measure: func(which string) error { return b.plugin(ctx, which) }},
	}
	for i := range measurements {
		m := &measurements[i]
		m.which = flags.String(m.name, m.of, m.usage)
	}
	if err := flags.Parse(args); err != nil {
		return err
	}
	fmt.Fprintf(out, "%s, %d CPUs, median (least to greatest) of %d runs in turn\n", runtime.Version(), runtime.NumCPU(), b.runs)
	for _, m := range measurements {
		if *only != "" && !slices.Contains(strings.Split(*only, ","), m.name) {
			continue
		}
		for which := range strings.SplitSeq(*m.which, ",") {
			if which == "" {
				continue
			}
			if err := m.measure(which); err != nil {
				return fmt.Errorf("%s of %s: %w", m.name, which, err)
			}
		}
	}
	return nil
}

// twin is the fabric of a measurement, with LIDs, for ibsim: the radix of a fat tree of
// three levels; a mesh such as 30x30, with a host on each switch;
// or a file.
func (b *bench) twin(ctx context.Context, which string) (*ibsim.Twin, error) {
	f, err := b.fabricOf(ctx, which)
	if err != nil {
		return nil, err
	}
	if f, err = lft.AssignLIDs(f, lft.LIDOptions{}); err != nil {
		return nil, err
	}
	fmt.Fprintf(b.out, "\n%s: %d switches, %d hosts, LIDs up to %d\n", which, f.NumSwitches(), len(f.CAPorts()), f.MaxLID())
	return ibsim.NewTwin(f)
}

func (b *bench) fabricOf(ctx context.Context, which string) (*fabric.Fabric, error) {
	var text []byte
	var err error
	if strings.Trim(which, "0123456789x") != "" {
		text, err = os.ReadFile(which)
	} else if !strings.Contains(which, "x") {
		text, err = exec.CommandContext(ctx, b.program, "gen", "fattree", "--levels", "3", "--radix", which).Output()
	} else {
		text, err = exec.CommandContext(ctx, b.program, "gen", "mesh", "--dims", which).Output()
	}
	if err != nil {
		return nil, err
	}
	f, _, err := topology.Parse(which, text, topology.Options{})
	return f, err
}

// writeTopology writes a fabric into a new directory, which the caller removes.
func writeTopology(f *fabric.Fabric) (dir, file string, err error) {
	if dir, err = os.MkdirTemp("", "ibweave-bench-"); err != nil {
		return "", "", err
	}
	file = filepath.Join(dir, "fabric.ibnetdiscover")
	return dir, file, os.WriteFile(file, topology.Append(nil, f), 0o644)
}

// compile runs ibweave compile, and returns what it says of its seconds and how long the
// process took.
func (b *bench) compile(ctx context.Context, file, engine string) (s compile.Seconds, process time.Duration, err error) {
	process, said, err := whole(ctx, "", b.program, "compile", "-t", file, "-e", engine, "--dry-run", "--format", "json")
	if err != nil {
		return s, 0, fmt.Errorf("%s compile: %w\n%s", b.program, err, said)
	}
	var summary struct {
		Seconds compile.Seconds `json:"seconds"`
	}
	// In front of it may be a line about a counterpart.
	err = json.Unmarshal([]byte(said[max(0, strings.IndexByte(said, '{')):]), &summary)
	return summary.Seconds, process, err
}

// qos are OpenSM's options for SLs of paths, and for nue to use as many lanes as ibsim's ports have.
var qos = []string{"qos TRUE", "nue_max_num_vls 8"}

// route routes a fabric with each of the engines, whose names both programs have.
func (b *bench) route(ctx context.Context, which string, engines []string) error {
	twin, err := b.twin(ctx, which)
	if err != nil {
		return err
	}
	dir, file, err := writeTopology(twin.Fabric)
	defer os.RemoveAll(dir)
	if err != nil {
		return err
	}
	for _, name := range engines {
		var theirs, route, check, both, process []time.Duration
		for range b.runs {
			t, err := openSM(ctx, twin, ibsim.OpenSMConfig{Engine: name, Options: qos})
			if err != nil {
				return err
			}
			theirs = append(theirs, t)
			s, p, err := b.compile(ctx, file, name)
			if err != nil {
				return err
			}
			r, v := time.Duration(s.Route*1e9), time.Duration(s.Verify*1e9)
			route, check, both, process = append(route, r), append(check, v), append(both, r+v), append(process, p)
		}
		b.row("OpenSM "+name, theirs)
		b.row("ibweave "+name+", route", route)
		b.row("ibweave "+name+", verify", check)
		b.row("ibweave "+name+", both", both)
		b.row("ibweave "+name+", process", process)
		b.ratio(theirs, both)
	}
	return nil
}

// openSM runs OpenSM once on a new ibsim, since it takes over the tables that
// it finds, and returns the time that its engine took.
func openSM(ctx context.Context, twin *ibsim.Twin, cfg ibsim.OpenSMConfig) (time.Duration, error) {
	sim, err := ibsim.StartTwin(ctx, twin, ibsim.Config{Timeout: 5 * time.Minute})
	if err != nil {
		return 0, err
	}
	defer sim.Close()
	cfg.Timeout, cfg.Flags = time.Hour, cmp.Or(cfg.Flags, 0x07)
	var begun time.Time
	var took time.Duration
	cfg.Line = func(l ibsim.LogLine) {
		if strings.Contains(l.Message, "building routing with ") {
			begun = time.Now()
		} else if strings.HasSuffix(l.Message, " tables configured on all switches") {
			took = time.Since(begun)
		}
	}
	r, err := ibsim.RunOpenSM(ctx, sim, cfg)
	if err != nil {
		return 0, err
	}
	if want, _, _ := strings.Cut(cfg.Engine, ","); r.Engine != want {
		return 0, fmt.Errorf("OpenSM used engine %q instead of %q", r.Engine, cfg.Engine)
	}
	return took, nil
}

// audit checks the tables of OpenSM.
func (b *bench) audit(ctx context.Context, which string) error {
	twin, err := b.twin(ctx, which)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "ibweave-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if _, err := openSM(ctx, twin, ibsim.OpenSMConfig{Engine: "updn", Flags: 0x43, Dir: dir}); err != nil {
		return err
	}
	list, fdbs, mcfdbs := filepath.Join(dir, "opensm-subnet.lst"), filepath.Join(dir, "opensm.fdbs"), filepath.Join(dir, "opensm.mcfdbs")
	var theirs, ours []time.Duration
	for range b.runs {
		// It ends by a segmentation fault on many fabrics, after printing.
		t, text, err := whole(ctx, dir, "ibdmchk", "-s", list, "-f", fdbs, "-m", mcfdbs)
		if err != nil && !strings.Contains(text, "Checking credit loops") && !strings.Contains(text, "no credit loops found") {
			return fmt.Errorf("ibdmchk: %w\n%s", err, text)
		}
		theirs = append(theirs, t)
		t, text, err = whole(ctx, "", b.program, "check", "-t", list, "--lfts", fdbs)
		if err != nil {
			return fmt.Errorf("%s check: %w\n%s", b.program, err, text)
		}
		ours = append(ours, t)
	}
	b.row("ibdmchk", theirs)
	b.row("ibweave check", ours)
	b.ratio(theirs, ours)
	_, said, err := whole(ctx, "", b.program, "compare", "--fail-on", "never", "--hottest", "0", "-t", list, "-e", "updn", "--lfts", fdbs, "--bisections", "0")
	fmt.Fprintf(b.out, "\n%s\n", said)
	return err
}

// whole times a process from start to end.
func whole(ctx context.Context, dir, name string, args ...string) (time.Duration, string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	start := time.Now()
	text, err := cmd.CombinedOutput()
	return time.Since(start), string(text), err
}

func median(d []time.Duration) time.Duration {
	s := slices.Sorted(slices.Values(d))
	return s[len(s)/2]
}

func (b *bench) row(what string, d []time.Duration) {
	fmt.Fprintf(b.out, "  %-32s %9.1f ms (%.1f to %.1f)\n", what, ms(median(d)), ms(slices.Min(d)), ms(slices.Max(d)))
}

func (b *bench) ratio(theirs, ours []time.Duration) {
	fmt.Fprintf(b.out, "  %-32s %9.1f times\n", "ratio", float64(median(theirs))/float64(median(ours)))
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
