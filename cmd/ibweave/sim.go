package main

import (
	"bytes"
	"cmp"
	"context"
	"strings"
	"sync/atomic"

	"github.com/spf13/cobra"

	"github.com/ibweave/ibweave/audit/experiment"
	"github.com/ibweave/ibweave/cmd/cli"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/par"
	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/mft"
	"github.com/ibweave/ibweave/sim"
)

func (a *app) simCommand() *cobra.Command {
	in := simulation{format: "text"}
	in.Config, in.Buffer, in.Pattern, in.Bytes, in.Seeds, in.tree = sim.Defaults(), sim.PortBuffer, sim.Uniform, []int{256}, []uint64{1}, "bfs"
	in.ranks.order = func(*fabric.Fabric, []fabric.PortID) {} // as listed
	cmd := &cobra.Command{
		Use:   "sim [DIR | -t TOPOLOGY {--lfts FILE | -e ENGINE}] {--load LIST | --burst N | --traffic FILE}",
		Short: "simulate tables with traffic, packet by packet or flit by flit",
		Args:  a.maxArgs(1),
		RunE:  func(cmd *cobra.Command, args []string) error { return a.sim(cmd.Context(), &in, args) },
	}
	in.flags = cmd.Flags()
	in.fileFlags(in.flags)
	in.flags.StringVarP(&in.Groups, "groups", "g", "", "`FILE` of multicast groups, with their MLIDs unless --repeat")
	a.fabricFlags(cmd)
	in.defineTraffic()
	in.defineJobs()
	a.hostGroupFlag(cmd)
	in.defineHardware()
	in.flags.StringVarP(&in.engine, "engine", "e", "", "make the tables of -t with `ENGINE`; names of OpenSM's engines stand for ours")
	in.choiceFlags(in.flags)
	in.flags.StringVar(&in.router, "router", "", "in place of tables `NAME`: spam, whose routers choose for each worm")
	in.flags.StringSliceVar(&in.roots, "roots", nil, "root of the router's spanning tree, `GUID`; by default the centre")
	cli.WordFlag(in.flags, &in.tree, "tree", "how the router's spanning tree grows, `KIND`: bfs, breadth first, or dfs, depth first", "bfs", "dfs")
	cli.ListFlag(in.flags, &in.engines, "engines", "", "compare the tables that each engine of `LIST` makes of -t", func(s string) ([]string, error) { return []string{s}, nil })
	cli.ListFlag(in.flags, &in.vls, "vls", "", "compare as many virtual lanes as `LIST` has, with the same buffer in all; messages are spread over them", parseLanes)
	cli.WordFlag(in.flags, &in.adaptive, "adaptive", "compare with adaptive routing, `HOW`: free, hbf, all, or far, with the states of --far as they are", experiment.Free, experiment.HBF, "all", experiment.AsRead)
	flags := in.flags
	cli.NumberFlag(flags, &in.jobs, "jobs", 1, cli.MaxNumber, "simulations at a time, `N`; by default one on each core")
	flags.StringVarP(&in.output, "output", "o", "-", "`FILE` for the results; - is standard output")
	cli.WordFlag(flags, &in.format, "format", "`FORM` of the output: text, csv or json", "text", "csv", "json")
	flags.StringVar(&in.svg, "svg", "", "write a picture of a comparison, `FILE`")
	flags.StringVar(&in.png, "png", "", "the same as PNG, `FILE`")
	in.defineScopes()
	return cmd
}

// sim checks the flags, reads, simulates, and writes.
func (a *app) sim(ctx context.Context, in *simulation, args []string) (err error) {
	if err := in.check(args); err != nil {
		return err
	}
	routings, trees, err := a.readNetwork(ctx, in, args)
	if err != nil {
		return err
	}
	if choices := in.choices(); choices != nil {
		if in.State.Adaptive == nil && in.adaptive == experiment.AsRead {
			return wrong("adaptive", "far: there is none: want --far FILE, or a directory with adaptive routing")
		}
		s := a.startStage("find choices")
		routings, err = experiment.AddChoices(ctx, routings, choices, in.State.Adaptive)
		s.End()
		if err != nil {
			return err
		}
	}
	if in.jobTraffic.file != "" {
		r, err := a.prepareJobs(ctx, in, routings)
		if err != nil {
			return err
		}
		if r.Results, err = runPoints(ctx, a, in, len(r.Points), r.Simulate); err != nil {
			return err
		}
		return a.writeJobs(in, r)
	}
	if err := in.checkPictures(len(routings)); err != nil {
		return err
	}
	run, err := a.prepare(in, routings, trees)
	if err != nil {
		return err
	}
	if run.Results, err = runPoints(ctx, a, in, len(run.Points), run.Simulate); err != nil {
		return err
	}
	run.Compared = run.Compare()
	if run.Compared != nil {
		c := run.Chart(in.trafficText(run))
		if err := a.writePictures(in.svg, in.png, c.SVG, c.PNG); err != nil {
			return err
		}
	}
	err = a.writeResults(in, text.CountGrouped(len(run.Results), "point", "points"), run.Document(in.parameters()), run.WriteCSV, func(b *text.Sheet) { in.writeText(b, run) })
	if err != nil {
		return err
	}
	return a.judgeSimulated(run)
}

// runPoints simulates n points, one on each core, or --jobs at
// a time. It begins with the last, since loads go up and the
// highest takes longest. The first error ends all.
func runPoints[R any](ctx context.Context, a *app, in *simulation, n int, simulate func(context.Context, int) (R, error)) ([]R, error) {
	stage := a.startStage("simulate " + text.CountGrouped(n, "point", "points"))
	defer stage.End()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	results := make([]R, n)
	var done atomic.Int64
	stage.Set(0, n)
	err := par.ForEach(ctx, in.jobs, n, func(k int) (err error) {
		i := n - 1 - k
		results[i], err = simulate(ctx, i)
		switch {
		case err == nil:
			stage.Set(int(done.Add(1)), n)
			return nil
		case cli.Is[*sim.ConservationError](err), ctx.Err() != nil: // keep the error
		case cli.Is[*experiment.SettingError](err):
			err = in.setting(err)
		default:
			err = cli.NewUsageError(err)
		}
		cancel(err)
		return err
	})
	return results, cmp.Or(context.Cause(ctx), err)
}

func (a *app) prepare(in *simulation, routings []experiment.Routing, trees []mft.Tree) (r *experiment.Run, err error) {
	f := routings[0].Net.Fabric
	if in.Setup.Traffic.Hosts, err = a.findRanks(in, f); err != nil {
		return nil, err
	}
	hosts := len(in.Setup.Traffic.Hosts)
	switch {
	case hosts < 2 && in.ranks.hosts+in.ranks.file != "":
		return nil, inputf("%s takes part, with a LID and a cable: want 2 or more", text.CountGrouped(hosts, "CA port", "CA ports"))
	case hosts < 2:
		return nil, inputf("%s has %s with a LID and a cable: want 2 or more", in.Topology, text.CountGrouped(hosts, "CA port", "CA ports"))
	}
	if r, err = experiment.NewRun(&in.Setup, routings, trees); err != nil {
		return nil, in.setting(err)
	}
	a.noteLanes(in, routings)
	return r, nil
}

// findRanks lists, by rank, the ports that take part.
func (a *app) findRanks(in *simulation, f *fabric.Fabric) (list []fabric.PortID, err error) {
	ranks := experiment.NewRanks(f)
	switch {
	case in.ranks.file != "":
		if err = a.readRanks(in, ranks.Add); err == nil && len(ranks.Ports) == 0 {
			err = inputf("%s names no host", in.ranks.file)
		}
	case in.ranks.hosts != "":
		if err = ranks.Add(in.ranks.hosts); err != nil {
			err = wrong("hosts", "%w", err)
		}
	default:
		ranks.AddAll()
	}
	in.ranks.order(f, ranks.Ports)
	return ranks.Ports, err
}

// readRanks reads --rank-file, and calls add with the hosts of each line.
func (a *app) readRanks(in *simulation, add func(hosts string) error) error {
	data, err := a.reader(&in.audit).ReadFile(in.ranks.file)
	if err != nil {
		return err
	}
	number := 0
	for line := range bytes.Lines(data) {
		number++
		said := strings.TrimRight(string(line), "\r\n")
		hosts, _, _ := strings.Cut(said, "#")
		if hosts = strings.TrimSpace(hosts); hosts == "" {
			continue
		}
		if err := add(hosts); err != nil {
			return &fabric.ParseError{File: in.ranks.file, Line: number, Text: said, Err: err}
		}
	}
	return nil
}
