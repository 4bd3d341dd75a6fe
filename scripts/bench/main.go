// Command bench measures ibweave against the programs that do the same work
// on real fabrics, in one run on one machine, turn by turn:
//
//   - routing and verification by ibweave compile --dry-run, as it says in its
//     seconds, against OpenSM's own engine, from "building routing with" to
//     "tables configured" in its log at -D 0x07, where it writes no dumps;
//     OpenSM does not verify;
//   - the audit of OpenSM's dumps, as whole processes that read the text,
//     against ibdmchk;
//   - discovery of a simulated fabric, as whole processes, against ibnetdiscover,
//     with the same fabric found;
//   - the engine layered against OpenSM's dfsssp, lash and nue, with lanes, loads
//     and bisection bandwidth;
//   - each stage of the work on a fabric against its floor: the bytes that it has to
//     move, or the channels that it has to look at, by what the machine can do;
//   - the plugin's ibweave-updn, by the time inside its callbacks that it logs,
//     against OpenSM's updn, beside an engine that does nothing.
//
// Fabrics are 3-level fat trees and meshes with a host on each switch, which are
// routed by dimension-order routing. Medians of -runs are printed, with the least
// and the greatest, and the ratio of the medians.
package main

import (
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
	"strconv"
	"strings"
	"time"

	"github.com/ibweave/ibweave/compile"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/fabric/topology"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/mesh"
	"github.com/ibweave/ibweave/sminterface/dump"
	"github.com/ibweave/ibweave/sminterface/ibsim"
	"github.com/ibweave/ibweave/updown"
	"github.com/ibweave/ibweave/verify"
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

func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	route := flags.String("route", "24", "radixes to route, with commas; 36 takes OpenSM a minute a run")
	engines := flags.String("engines", "updn,minhop", "engines that both have, with commas")
	meshes := flags.String("mesh", "30x30", "meshes to route with dor, with commas")
	audit := flags.String("audit", "20", "radixes to audit, with commas")
	discover := flags.String("discover", "16x16,12", "what to discover, with commas: meshes, radixes of fat trees, files")
	plugin := flags.String("plugin", "24", "radixes to route with OpenSM's plugin, with commas")
	lanes := flags.String("layered", "12,8x8t", "what to route with layered and OpenSM's engines that use lanes, with commas: radixes of fat trees, meshes, tori as 8x8t, files; 24 takes OpenSM minutes")
	laneEngines := flags.String("layered-engines", "dfsssp,lash,nue", "the engines of OpenSM for that, with commas")
	incremental := flags.String("incremental", "", "radixes of fat trees in which things fail and come back, with commas: 24,36")
	library := flags.String("library", "bin/libibweave-opensm.so", "the plugin")
	floorsOf := flags.String("floors", "", "what to measure stage by stage beside the least that the machine would take, with commas: radixes of fat trees, meshes")
	stages := flags.String("stages", "", "for -floors, only stages whose names contain one of these, with commas")
	peers := flags.Bool("peers", true, "for -floors, run OpenSM and ibdmchk as well")
	lean := flags.Bool("lean", false, "for -floors, opensm-lfts.dump without comments and no other large dumps")
	dir := flags.String("dir", os.TempDir(), "for -floors, a directory on the disk to measure")
	runs := flags.Int("runs", 5, "runs of each program")
	program := flags.String("ibweave", "bin/ibweave", "the program")
	if err := flags.Parse(args); err != nil {
		return err
	}
	fmt.Fprintf(out, "%s, %d CPUs, median (least to greatest) of %d runs in turn\n", runtime.Version(), runtime.NumCPU(), *runs)
	for _, radix := range strings.Split(*incremental, ",") {
		if radix == "" {
			continue
		}
		if err := benchIncremental(ctx, out, radix, *runs); err != nil {
			return err
		}
	}
	for _, radix := range strings.Split(*route, ",") {
		if radix == "" {
			continue
		}
		f, err := fatTree(out, radix)
		if err == nil {
			err = benchRoute(ctx, out, f, *program, strings.Split(*engines, ","), *runs)
		}
		if err != nil {
			return err
		}
	}
	for _, dims := range strings.Split(*meshes, ",") {
		if dims == "" {
			continue
		}
		f, err := grid(out, dims)
		if err == nil {
			err = benchRoute(ctx, out, f, *program, []string{"dor"}, *runs)
		}
		if err != nil {
			return err
		}
	}
	for _, radix := range strings.Split(*audit, ",") {
		if radix == "" {
			continue
		}
		if err := benchAudit(ctx, out, radix, *program, *runs); err != nil {
			return err
		}
	}
	for _, which := range strings.Split(*discover, ",") {
		if which == "" {
			continue
		}
		if err := benchDiscover(ctx, out, which, *program, *runs); err != nil {
			return err
		}
	}
	for _, which := range strings.Split(*lanes, ",") {
		if which == "" {
			continue
		}
		if err := benchLayered(ctx, out, which, *program, strings.Split(*laneEngines, ","), *runs); err != nil {
			return err
		}
	}
	for _, which := range strings.Split(*floorsOf, ",") {
		if which == "" {
			continue
		}
		m := &floors{out: out, program: *program, dir: *dir, runs: *runs, peers: *peers, lean: *lean}
		if *stages != "" {
			m.stages = strings.Split(*stages, ",")
		}
		if err := benchFloors(ctx, which, m); err != nil {
			return err
		}
	}
	for _, radix := range strings.Split(*plugin, ",") {
		if radix == "" {
			continue
		}
		f, err := fatTree(out, radix)
		if err == nil {
			err = benchPlugin(ctx, out, f, *library, *runs)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// fatTree is the fabric of a measurement, with LIDs.
func fatTree(out io.Writer, radix string) (*fabric.Fabric, error) {
	k, err := strconv.Atoi(radix)
	if err != nil {
		return nil, err
	}
	f, err := gen.FatTree(gen.FatTreeSpec{Radix: k, Levels: 3})
	if err != nil {
		return nil, err
	}
	return withLIDs(out, f, "fattree radix "+radix)
}

// grid is a mesh, or a torus such as 8x8t, with a host on each switch, with LIDs.
func grid(out io.Writer, dims string) (*fabric.Fabric, error) {
	spec := mesh.Spec{Hosts: 1}
	sizes, torus := strings.CutSuffix(dims, "t")
	for _, size := range strings.Split(sizes, "x") {
		n, err := strconv.Atoi(size)
		if err != nil {
			return nil, err
		}
		spec.Dims, spec.Wrap = append(spec.Dims, n), append(spec.Wrap, torus)
	}
	f, err := mesh.Generate(spec)
	if err != nil {
		return nil, err
	}
	return withLIDs(out, f, "mesh "+dims)
}

func withLIDs(out io.Writer, f *fabric.Fabric, name string) (*fabric.Fabric, error) {
	f, err := lft.AssignLIDs(f, lft.LIDOptions{})
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(out, "\n%s: %d switches, %d hosts, LIDs up to %d\n", name, f.NumSwitches(), len(f.CAPorts()), f.MaxLID())
	return f, nil
}

// benchRoute routes f with each of the engines, whose names both programs have.
func benchRoute(ctx context.Context, out io.Writer, f *fabric.Fabric, program string, engines []string, runs int) error {
	twin, err := ibsim.NewTwin(f)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "ibweave-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	text := filepath.Join(dir, "fabric.ibnetdiscover")
	if err := os.WriteFile(text, topology.Append(nil, f), 0o644); err != nil {
		return err
	}
	for _, name := range engines {
		var theirs, route, check, both, process []time.Duration
		for range runs {
			t, err := openSM(ctx, twin, ibsim.OpenSMConfig{Engine: name, Flags: 0x07})
			if err != nil {
				return err
			}
			theirs = append(theirs, t)
			t, said, err := whole(ctx, "", program, "compile", "-t", text, "-e", name, "--dry-run", "--format", "json")
			if err != nil {
				return fmt.Errorf("%s compile: %w\n%s", program, err, said)
			}
			var summary struct {
				Seconds compile.Seconds `json:"seconds"`
			}
			if err := json.Unmarshal([]byte(said), &summary); err != nil {
				return err
			}
			r, v := duration(summary.Seconds.Route), duration(summary.Seconds.Verify)
			route, check, both, process = append(route, r), append(check, v), append(both, r+v), append(process, t)
		}
		row(out, "OpenSM "+name, theirs)
		row(out, "ibweave "+name+", route", route)
		row(out, "ibweave "+name+", verify", check)
		row(out, "ibweave "+name+", both", both)
		row(out, "ibweave "+name+", process", process)
		ratio(out, theirs, both)
	}
	return nil
}

func duration(seconds float64) time.Duration { return time.Duration(seconds * float64(time.Second)) }

// openSM runs OpenSM once on a new ibsim, since it takes over the tables that
// it finds, and returns the time that its engine took.
func openSM(ctx context.Context, twin *ibsim.Twin, cfg ibsim.OpenSMConfig) (time.Duration, error) {
	sim, err := ibsim.StartTwin(ctx, twin, ibsim.Config{Timeout: 5 * time.Minute})
	if err != nil {
		return 0, err
	}
	defer sim.Close()
	if cfg.Timeout == 0 {
		cfg.Timeout = time.Hour
	}
	r, err := ibsim.RunOpenSM(ctx, sim, cfg)
	if err != nil {
		return 0, err
	}
	if want, _, _ := strings.Cut(cfg.Engine, ","); r.Engine != want {
		return 0, fmt.Errorf("OpenSM used engine %q instead of %q", r.Engine, cfg.Engine)
	}
	return r.Routing, nil
}

func benchAudit(ctx context.Context, out io.Writer, radix, program string, runs int) error {
	f, err := fatTree(out, radix)
	if err != nil {
		return err
	}
	twin, err := ibsim.NewTwin(f)
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
	for range runs {
		// It ends by a segmentation fault on many fabrics, after printing.
		t, text, err := whole(ctx, dir, "ibdmchk", "-s", list, "-f", fdbs, "-m", mcfdbs)
		if err != nil && !strings.Contains(text, "Checking credit loops") && !strings.Contains(text, "no credit loops found") {
			return fmt.Errorf("ibdmchk: %w\n%s", err, text)
		}
		theirs = append(theirs, t)
		t, text, err = whole(ctx, "", program, "check", "-t", list, "--lfts", fdbs)
		if err != nil {
			return fmt.Errorf("%s check: %w\n%s", program, err, text)
		}
		ours = append(ours, t)
	}
	row(out, "ibdmchk", theirs)
	row(out, "ibweave check", ours)
	ratio(out, theirs, ours)
	return busiest(ctx, out, twin.Fabric, fdbs)
}

// busiest prints the load of the busiest link in OpenSM's tables and in ours.
func busiest(ctx context.Context, out io.Writer, f *fabric.Fabric, fdbs string) error {
	data, err := os.ReadFile(fdbs)
	if err != nil {
		return err
	}
	theirs, _, err := dump.ReadLFTs(fdbs, data, f, dump.Options{})
	if err != nil {
		return err
	}
	ours, err := updown.Engine{}.Route(ctx, f, lft.Options{})
	if err != nil {
		return err
	}
	for _, t := range []struct {
		name   string
		tables *lft.Tables
	}{{"OpenSM updn, busiest link", theirs}, {"ibweave updn, busiest link", ours.Tables}} {
		v, err := verify.Check(ctx, f, t.tables, verify.Options{})
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "  %-32s %9d routes, mean %.0f\n", t.name, v.Balance.MaxRoutes, v.Balance.MeanRoutes)
	}
	return nil
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

func row(out io.Writer, what string, d []time.Duration) {
	fmt.Fprintf(out, "  %-32s %9.1f ms (%.1f to %.1f)\n", what, ms(median(d)), ms(slices.Min(d)), ms(slices.Max(d)))
}

func ratio(out io.Writer, theirs, ours []time.Duration) {
	fmt.Fprintf(out, "  %-32s %9.1f times\n", "ratio", float64(median(theirs))/float64(median(ours)))
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
