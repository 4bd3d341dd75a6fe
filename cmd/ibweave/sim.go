package main

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"

	"github.com/ibweave/ibweave/audit/yamlfile"
	"github.com/ibweave/ibweave/cmd/cli"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/mft"
	"github.com/ibweave/ibweave/sim"
	"github.com/ibweave/ibweave/sim/sweep"
	"github.com/ibweave/ibweave/sminterface/dump"
	"github.com/ibweave/ibweave/state/open"
)

// simulation is what sim is asked to do.
type simulation struct {
	audit
	flags      *pflag.FlagSet
	file       string                // experiment file, "" for none
	experiment *yamlfile.File        // what is in it
	from       map[string]*yaml.Node // by flag: where the experiment file sets it

	loads   []float64
	bytes   []int
	seeds   []uint64
	burst   int
	trace   string
	pattern sim.Pattern
	sources sim.SourceCount
	traffic sim.Traffic
	stop    sim.Stop
	cfg     sim.Config
	buffer  int // bytes of a port, which its lanes share
	flits   int // of each lane instead; 0 for none
	packets int // of the longest that each lane has room for instead; 0 for none

	jobTraffic
	ranks    ranks
	engine   string   // for -t without tables; "" chooses one
	engines  []string // several of them, to compare; nil for none
	vls      []int    // VLs to compare; nil for those of the tables
	adaptive string   // "" for static tables alone
	router   string   // in place of tables; "" for tables
	svg, png string   // files; "" for none

	jobs   int
	output string
	state  string
	format string
}

func (a *app) simCommand() *cobra.Command {
	in := simulation{format: "text", cfg: sim.Defaults(), buffer: sim.PortBuffer, pattern: sim.Uniform{}, bytes: []int{256}, seeds: []uint64{1}, from: map[string]*yaml.Node{}}
	cmd := &cobra.Command{
		Use:   "sim [DIR | -t TOPOLOGY {--lfts FILE | -e ENGINE}] {--load LIST | --burst N | --trace FILE | --traffic FILE}",
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
	listFlag(in.flags, &in.engines, "engines", "", "compare the tables that each engine of `LIST` makes of -t", func(s string) ([]string, error) { return []string{s}, nil })
	listFlag(in.flags, &in.vls, "vls", "", "compare as many virtual lanes as `LIST` has, with the same buffer in all; messages are spread over them", parseLanes)
	wordFlag(in.flags, &in.adaptive, "adaptive", "compare with adaptive routing, `HOW`: free, hbf, all, or far, with the states of --far as they are", routedFree, routedHBF, "all", routedAsRead)
	flags := in.flags
	flags.StringVarP(&in.file, "file", "f", "", "experiment `FILE` with flags")
	numberFlag(flags, &in.jobs, "jobs", 1, maxNumber, "simulations at a time, `N`; by default one on each core")
	flags.StringVarP(&in.output, "output", "o", "-", "`FILE` for the results; - is standard output")
	flags.StringVar(&in.state, "state", "", "keep finished points of a sweep in `FILE`, and go on from there")
	wordFlag(flags, &in.format, "format", "`FORM` of the output: text, csv or json", "text", "csv", "json")
	flags.StringVar(&in.svg, "svg", "", "write a picture of a comparison, `FILE`")
	flags.StringVar(&in.png, "png", "", "the same as PNG, `FILE`")
	in.defineScopes()
	return cmd
}

// defineScopes says which flags have no effect beside others.
func (in *simulation) defineScopes() {
	scopes(in.flags,
		scope{flags: "state", not: "traffic", why: "only sweeps are kept"},
		scope{flags: "fit mcast scale top", with: "traffic", why: "they are about its jobs"},
		scope{flags: "host-groups", with: "traffic", why: "its jobs may name groups"},
		scope{flags: "buffer", not: "buffer-flits buffer-packets", why: "each lane has its own buffer then"},
		scope{flags: "choice choose-again", with: "adaptive far", not: "adaptive=hbf", why: "packets have no choice then"},
		scope{flags: "flit-bytes", not: "buffer-packets", why: "flits are of 64 bytes then, or of the packet", note: true},
		scope{flags: "png svg", with: "adaptive far engines vls traffic", why: "the picture compares routings"},
		scope{flags: "flows", with: "adaptive far", not: "trace traffic", why: "only adaptive tables tell flows apart"},
		scope{flags: "bytes hosts lengths multicast rank-file", not: "trace traffic", why: noTraces},
		scope{flags: "sls", not: "trace", why: noTraces},
		scope{flags: "rank-order", with: "pattern", why: "uniform traffic is the same in any order", note: true},
		scope{flags: "seed", not: "trace", why: noTraces, note: true},
		scope{flags: "pattern", not: "trace traffic multicast=1", why: "there is no unicast to choose receivers for"},
		scope{flags: "max-bytes", with: "lengths=geometric", note: true},
		scope{flags: "repeat sources", with: "multicast", why: "the share of messages that go to groups"},
		scope{flags: "order", with: "repeat"},
		scope{flags: "arrivals error max-queue min-messages warm-up", with: "load", why: "only open loop is measured so", note: true},
		scope{flags: "cycle shape", with: "arrivals=negative-binomial", note: true},
		scope{flags: "output-flits", with: "copying=wormhole|greedy-wormhole router"})
}

// noTraces ends the notes on flags that --trace and --traffic leave without effect.
const noTraces = "the file says what is sent"

// ownFlags are those that say how sim runs, not what it finds.
var ownFlags = map[string]bool{"file": true, "jobs": true, "output": true, "state": true, "format": true, "svg": true, "png": true, "help": true, "log-level": true, "log-format": true, "color": true, "strict": true}

// fileFlags name files.
var fileFlags = map[string]bool{"topology": true, "lfts": true, "sl2vl": true, "path-sl": true, "mfts": true, "far": true, "plft": true, "groups": true, "trace": true, "traffic": true, "host-groups": true, "rank-file": true, "node-name-map": true}

func (in *simulation) defineTraffic() {
	flags, t := in.flags, &in.traffic
	listFlag(flags, &in.loads, "load", "", "open loop: share of its link's data rate that each host offers, in bytes of data; `LIST` of numbers and FIRST:LAST:STEP", parseLoads)
	numberFlag(flags, &in.burst, "burst", 0, 1<<20, "closed loop: each host sends `N` messages at once")
	flags.StringVar(&in.trace, "trace", "", "replay the messages of `FILE`")
	parsedFlag(flags, &in.pattern, "pattern", "uniform", "`PATTERN` of unicast: uniform, permutation[:SEED], bisection[:SEED], shift:BY, hot-spot:HOST:SHARE, alltoall[:GROUP], allreduce-ring, reduce-scatter, all-gather, allreduce-tree, broadcast, halo[:AxBxC]; hosts count from 0", sim.ParsePattern)
	flags.StringVar(&in.ranks.hosts, "hosts", "", "hosts that send and receive, `LIST` of names or n[001-064]; their ports are ranks in this order; by default all of the fabric")
	flags.StringVar(&in.ranks.file, "rank-file", "", "the same from `FILE`: names of hosts in the order of ranks, # begins a comment")
	parsedFlag(flags, &in.ranks.order, "rank-order", "listed", "`ORDER` of ranks: listed, leaf by leaf (leaf), or random[:SEED]", sim.ParseRankOrder)
	listFlag(flags, &in.bytes, "bytes", "256", "length of messages, `LIST`", parseSizes)
	flags.TextVar(&t.Lengths, "lengths", sim.Fixed, "`LENGTHS` of messages: fixed, or geometric with the mean of --bytes")
	numberFlag(flags, &t.MaxBytes, "max-bytes", 0, 1<<30, "cut geometric messages to `N` bytes; 0 does not")
	flags.TextVar(&t.Arrivals, "arrivals", sim.Poisson, "`TIMES` between messages: poisson, deterministic, negative-binomial")
	numberFlag(flags, &t.Shape, "shape", 0, 1000, "of negative-binomial: `N` geometric times; 0 is 1")
	in.time(&t.Cycle, "cycle", "`TIME` of a cycle of negative-binomial; 0ns is that of a byte")
	in.share(&t.Multicast, "multicast", 0, 1, "share of messages that go to groups, `0 to 1`")
	parsedFlag(flags, &in.sources, "sources", "all", "hosts that do, of those that may send to groups: one, all, `N` or N%", sim.ParseSources)
	flags.BoolVar(&t.Repeat, "repeat", false, "multicast as one unicast message for each receiver")
	flags.TextVar(&t.Order, "order", sim.ByLID, "`ORDER` of --repeat: lid, from-self, shuffled")
	numberFlag(flags, &t.SLs, "sls", 0, 16, "spread messages over SL 0 to `N`-1 by host and count; 0 takes SLs of paths and groups")
	numberFlag(flags, &t.Flows, "flows", 0, 1<<20, "flows between two hosts: messages are of flow 0 to `N`-1 in turn; 0 is 1")
	listFlag(flags, &in.seeds, "seed", "1", "seed of everything random, `LIST`", parseSeeds)

	in.time(&in.stop.WarmUp, "warm-up", "`TIME` that is not measured; 0ns is that of 20 messages of each host")
	in.stop.RelativeError = 0.02
	in.share(&in.stop.RelativeError, "error", 0, 1, "stop when the mean latency is known to this `SHARE` of itself with 95 % confidence; 0 goes on to --max-time")
	in.stop.MinMessages, in.stop.MaxQueue = 10_000, 1000
	numberFlag(flags, &in.stop.MinMessages, "min-messages", 1, 1<<40, "and `N` messages at least have arrived")
	in.time(&in.stop.MaxTime, "max-time", "stop at this `TIME` in any case; 0ns is that of 2000 messages of each host, or of 20 times --min-messages, and never with --burst and --trace")
	numberFlag(flags, &in.stop.MaxQueue, "max-queue", 1, 1<<30, "stop as saturated when hosts have `N` packets more waiting, on average, than after the warm-up")
}

func (in *simulation) defineHardware() {
	flags, c := in.flags, &in.cfg
	numberFlag(flags, &c.Mbps, "mbps", 0, 1<<30, "data rate of all links, `N` megabits a second; 0 takes each link's own")
	in.time(&c.WireDelay, "wire-delay", "`TIME` along a cable")
	in.time(&c.CreditDelay, "credit-delay", "`TIME` from when a packet has left a buffer until the sender behind it knows")
	in.time(&c.RoutingDelay, "routing-delay", "`TIME` from when a packet's first byte enters a switch until it asks for its way out")
	in.time(&c.Startup, "startup", "`TIME` that a host takes to start a message")
	numberFlag(flags, &c.FlitBytes, "flit-bytes", 1, 1<<20, "bytes of a flit, which buffers and credits count in")
	numberFlag(flags, &in.buffer, "buffer", 1, 1<<30, "`BYTES` of input buffer of each port of a switch, in equal parts for its VLs")
	numberFlag(flags, &in.flits, "buffer-flits", 0, 1<<30, "instead: `N` flits for each port and VL")
	numberFlag(flags, &in.packets, "buffer-packets", 0, 1<<20, "instead: room for `N` of the longest packets for each port and VL, and flits of 64 bytes or less")
	numberFlag(flags, &c.OutputFlits, "output-flits", 0, 1<<20, "flits in the output buffer of each port and VL, with wormhole copying")
	numberFlag(flags, &c.MTU, "mtu", 0, 1<<30, "most bytes of data in a packet, `N`; 0 sends every message as one")
	numberFlag(flags, &c.HeaderBytes, "header-bytes", 0, 1<<20, "bytes added to each packet")
	flags.TextVar(&c.Copying, "copying", sim.Independent, "`HOW` switches copy and forward: independent as InfiniBand does, reserving, lock-step, wormhole, greedy-wormhole")
	flags.TextVar(&c.Arbitration, "arbitration", sim.RoundRobin, "`RULE` for the input that goes next: round-robin, fifo, lowest-port")
	flags.TextVar(&c.Choice, "choice", sim.LeastQueued, "`HOW` adaptive switches choose for a packet: least-queued, most-credits")
	flags.BoolVar(&c.ChooseAgain, "choose-again", false, "a packet that is blocked takes the first port of its choice that is free")
	listFlag(flags, &c.VLWeights, "vl-weights", "", "units of 64 bytes that VL 0, 1, .. may send in turn, `LIST`; by default one packet each", parseWeights)
	numberFlag(flags, &c.FullChecks, "full-checks", 0, 1<<40, "count all flits and credits again every `N` events; 0 checks them as they move")
}

// choices are flags of which one is wanted: what the command line
// says of one takes the place of all that an experiment file says.
var choices = [][]string{{"tables", "topology", "lfts", "far", "engine"}, {"load", "burst", "trace", "traffic"}, {"buffer", "buffer-flits", "buffer-packets"}}

// wrong says what is wrong with a flag, and where an experiment file sets it.
func (in *simulation) wrong(flag, format string, args ...any) error {
	err := fmt.Errorf("%s: %w", flag, fmt.Errorf(format, args...))
	if at, ok := in.from[flag]; ok {
		return in.experiment.Fail(at, "%w", err)
	}
	return usagef("--%w", err)
}

// given says whether a flag was set, by the command line or an experiment file.
func (in *simulation) given(flag string) bool { return in.flags.Changed(flag) }

// sim is the command.
func (a *app) sim(ctx context.Context, in *simulation, args []string) (err error) {
	if in.file != "" {
		if args, err = a.readExperiment(in, args); err != nil {
			return err
		}
	}
	if err := a.sayNotes(a.checkScopes(a.command, in)); err != nil {
		return err
	}
	if err := in.check(args); err != nil {
		return err
	}
	routings, trees, err := a.readNetwork(ctx, in, args)
	if err != nil {
		return err
	}
	if routings, err = a.addChoices(ctx, in, routings); err != nil {
		return err
	}
	if in.jobTraffic.file != "" {
		r, err := a.prepareJobs(ctx, in, routings)
		if err != nil {
			return err
		}
		stage := a.startStage("simulate " + text.CountGrouped(len(r.points), "point", "points"))
		r.results, err = sweep.Run(ctx, len(r.points), sweep.Options{Jobs: in.jobs, Progress: stage.Set}, r.simulate)
		stage.End()
		if err != nil {
			return err
		}
		return a.writeJobs(r)
	}
	if err := in.checkPictures(len(routings)); err != nil {
		return err
	}
	run, err := a.prepare(in, routings, trees)
	if err != nil {
		return err
	}
	opt := sweep.Options{Jobs: in.jobs, State: in.state}
	if opt.Key, err = sweep.Key(run.key()); err != nil {
		return err
	}
	stage := a.startStage(fmt.Sprintf("simulate %s", text.CountGrouped(len(run.points), "point", "points")))
	opt.Progress = stage.Set
	run.results, err = sweep.Run(ctx, len(run.points), opt, run.simulate)
	stage.End()
	if is[*sweep.KeyError](err) {
		return open.NewError(err)
	}
	if err != nil {
		return err
	}
	run.compared = run.compare()
	if run.compared != nil {
		c := run.chart()
		if err := a.writePictures(in.svg, in.png, c.SVG, c.PNG); err != nil {
			return err
		}
	}
	run.nameWitnesses()
	if err := a.writeResults(in, text.CountGrouped(len(run.results), "point", "points"), run.document(), run.writeCSV, run.writeText); err != nil {
		return err
	}
	return a.judgeSimulated(run)
}

// checkPictures refuses pictures of one routing.
func (in *simulation) checkPictures(routings int) error {
	for _, picture := range []string{"svg", "png"} {
		if in.given(picture) && routings == 1 {
			return usagef("--%s compares routings, and there is one: want two --engines or --vls, or --adaptive", picture)
		}
	}
	return nil
}

// check says what is wrong with flags by themselves.
func (in *simulation) check(args []string) error {
	kinds := count(choices[1], in.given)
	files := in.Topology != "" || in.HasTables() || in.PLFT != ""
	fail := usagef
	if in.file != "" {
		fail = func(format string, args ...any) error {
			return in.experiment.Fail(&yaml.Node{Line: 1}, format, args...)
		}
	}
	if in.router != "" {
		if err := in.checkRouter(args); err != nil {
			return err
		}
	}
	switch {
	case kinds > 1 && len(in.from) > 0:
		line := func(flag string) int {
			if at := in.from[flag]; at != nil {
				return at.Line
			}
			return 0
		}
		last := slices.MaxFunc(choices[1], func(a, b string) int { return line(a) - line(b) })
		return in.wrong(last, "a second kind of traffic: want one of load, burst, trace and traffic")
	case kinds == 0 && in.file != "":
		return fail("no traffic: want a line with load, burst, trace or traffic, or --load LIST, --burst N, --trace FILE or --traffic FILE beside -f")
	case kinds != 1:
		return usagef("sim needs one kind of traffic: --load LIST, --burst N, --trace FILE or --traffic FILE")
	case in.given("burst") && in.burst == 0:
		return in.wrong("burst", "0 messages: want 1 or more")
	case in.engine != "" && (len(args) > 0 || in.HasTables()):
		return in.wrong("engine", "routes a topology, and there are tables: want -t FILE alone, or no -e")
	case in.engines != nil && (len(args) > 0 || in.HasTables()):
		return in.wrong("engines", "route a topology, and there are tables: want -t FILE alone, or no --engines")
	case in.engines != nil && in.engine != "":
		return in.wrong("engines", "say the same as --engine: want one of them")
	case in.jobTraffic.fit && !in.routed(args):
		return in.wrong("fit", "makes tables, and they were given: want -t FILE with --engines or -e")
	case in.routed(args) && (in.SL2VL != "" || in.PathSLs != "" || in.MFTs != ""):
		return usagef("the engine makes all tables: want no --sl2vl, --path-sl and --mfts beside -t FILE")
	case !in.routed(args) && in.router == "" && len(args) == 0 && (in.Topology == "" || !in.HasTables()):
		if in.file != "" {
			return fail("no tables: want a line with tables, or with topology and lfts, or a directory beside -f")
		}
		return usagef("sim needs a directory that compile wrote, or -t TOPOLOGY and --lfts FILE, or -t TOPOLOGY and -e ENGINE")
	case len(args) > 0 && (files || in.SL2VL != "" || in.PathSLs != "" || in.MFTs != ""):
		return usagef("sim takes a directory or -t and --lfts, not both")
	case in.packets > 0 && in.flits > 0:
		return in.wrong("buffer-packets", "says the same as --buffer-flits: want one of them")
	case in.ranks.hosts != "" && in.ranks.file != "":
		return in.wrong("rank-file", "says the same as --hosts: want one of them")
	case in.jobTraffic.file != "" && in.Groups != "":
		return in.wrong("groups", "are for --load and --burst: jobs have groups of their own")
	case in.jobTraffic.file != "" && len(in.seeds) > 1:
		return in.wrong("seed", "%d seeds: want one for --traffic", len(in.seeds))
	}
	if in.traffic.MaxBytes > 0 {
		for _, n := range in.bytes {
			if n > in.traffic.MaxBytes {
				return in.wrong("max-bytes", "%d is less than the mean of %d", in.traffic.MaxBytes, n)
			}
		}
	}
	return oneStdin(in.Topology, in.LFTs, in.SL2VL, in.PathSLs, in.MFTs, in.FAR, in.PLFT, in.Groups, in.trace, in.ranks.file, in.jobTraffic.file)
}

// readNetwork reads the tables, or makes them, and reads the groups.
func (a *app) readNetwork(ctx context.Context, in *simulation, args []string) (routings []simRouting, trees []mft.Tree, err error) {
	var routers simRouting
	switch {
	case in.router != "":
		routers, trees, err = a.routeWorms(ctx, in)
		routings = []simRouting{routers}
	case in.routed(args):
		routings, err = a.routeSimulated(ctx, in)
	default:
		var r *lft.Routing
		if r, err = a.readSimulated(in, args); err == nil {
			routings, err = in.divideLanes(r)
		}
	}
	if err != nil {
		return nil, nil, err
	}
	if err := in.onlyOnce(routings); err != nil {
		return nil, nil, err
	}
	for i := range routings {
		x, r := &routings[i], routings[i].routes
		x.net = sim.Network{Fabric: r.Fabric, Tables: r.Tables, SL2VL: r.SL2VL, PathSLs: r.PathSLs, Router: x.router}
		// Messages are spread over all VLs of --vls, unless --sls or the tables say which SL each path has.
		if x.sls = in.traffic.SLs; x.vls > 1 && r.PathSLs == nil && !in.given("sls") {
			x.sls = x.vls
		}
	}
	if a.nameMap.file != "" {
		in.Sums[a.nameMap.file] = hex.EncodeToString(a.nameMap.sum[:]) // groups may go by names
	}
	f := routings[0].net.Fabric
	switch {
	case in.traffic.Multicast > 0 && in.Groups == "":
		return nil, nil, in.wrong("multicast", "needs groups: -g FILE, or a directory that was compiled with groups")
	case in.Groups == "" && in.MFTs == "", in.router != "":
	case in.traffic.Repeat:
		trees, err = a.readReceivers(in, f)
	case in.MFTs == "":
		return nil, nil, inputf("%s has groups, and there are no multicast tables: name them, --mfts FILE, or send by --repeat", in.Groups)
	default:
		if err = a.reader(&in.audit).Multicast(); err == nil {
			m := in.State.Multicast
			trees = m.Trees
			for i := range routings {
				routings[i].net.Multicast = m.Tables
			}
		}
	}
	return routings, trees, err
}

// readSimulated reads the unicast tables and lanes.
func (a *app) readSimulated(in *simulation, args []string) (*lft.Routing, error) {
	in.Sums = map[string]string{}
	in.TakeAdaptive = in.adaptive != "" || in.FAR != ""
	groups := in.Groups
	in.Groups = ""
	if err := a.resolveAudit("sim", &in.audit, args); err != nil {
		return nil, err
	}
	in.Certificate = ""
	if groups != "" {
		in.Groups = groups
	}
	r, err := a.readRouting(&in.audit)
	if err != nil {
		return nil, err
	}
	r.Engine = "--adaptive"
	return r, nil
}

// readReceivers reads groups of which MLIDs do not matter.
func (a *app) readReceivers(in *simulation, f *fabric.Fabric) ([]mft.Tree, error) {
	data, err := a.reader(&in.audit).ReadFile(in.Groups)
	if err != nil {
		return nil, err
	}
	groups, problems, err := open.ReadGroups(in.Groups, data, f, dump.Options{Lenient: in.Lenient})
	a.dumpProblems(problems, in.Lenient)
	if err != nil {
		return nil, err
	}
	var trees []mft.Tree
	for i := range groups {
		g := &groups[i]
		trees = append(trees, mft.Tree{Group: i, Name: g.Name, Senders: g.Senders, Receivers: g.Receivers, SL: g.SL})
	}
	return trees, nil
}

// simRun is a sweep that is ready to run.
type simRun struct {
	in       *simulation
	routings []simRouting
	net      sim.Network // of the first
	trees    []mft.Tree
	trace    []sim.Timed
	hosts    int
	mbps     int // of the slowest link of a host
	points   []simParameters
	results  []sim.Result
	compared []simCompared // nil where there is one routing
}

// simParameters are what tells points apart.
type simParameters struct {
	Load    float64 `json:"load,omitempty"` // 0 in closed loop
	Bytes   int     `json:"bytes,omitempty"`
	Seed    uint64  `json:"seed,omitempty"`
	Routing string  `json:"routing,omitempty"` // with --engines, --vls and --adaptive
	Engine  string  `json:"engine,omitempty"`  // of it, with --engines
	VLs     int     `json:"vls,omitempty"`     // of it, with --vls
	what    string  // which jobs; "" for other traffic
}

// prepare makes the points.
func (a *app) prepare(in *simulation, routings []simRouting, trees []mft.Tree) (r *simRun, err error) {
	net := routings[0].net
	r = &simRun{in: in, routings: routings, net: net, trees: trees, mbps: in.cfg.Mbps}
	f := net.Fabric
	if in.traffic.Hosts, err = a.findRanks(in, f); err != nil {
		return nil, err
	}
	r.hosts = len(in.traffic.Hosts)
	for _, p := range in.traffic.Hosts {
		if in.cfg.Mbps == 0 {
			mbps := f.Link(p).Mbps()
			if mbps == 0 {
				return nil, in.wrong("mbps", "the fabric does not say how fast the link of %s is: want megabits a second for all", f.PortName(p))
			}
			if r.mbps == 0 || mbps < r.mbps {
				r.mbps = mbps
			}
		}
	}
	vls, err := in.mostLanes(routings)
	if err != nil {
		return nil, err
	}
	if in.trace != "" {
		return r, a.readTrace(r, vls)
	}
	a.noteLanes(in, vls)
	if r.hosts < 2 && in.ranks != (ranks{order: in.ranks.order}) {
		return nil, inputf("%s takes part, with a LID and a cable: want 2 or more", text.CountGrouped(r.hosts, "CA port", "CA ports"))
	}
	if r.hosts < 2 {
		return nil, inputf("%s has %s with a LID and a cable: want 2 or more", in.Topology, text.CountGrouped(r.hosts, "CA port", "CA ports"))
	}
	if _, err := in.pattern.For(r.hosts); err != nil {
		return nil, in.wrong("pattern", "%w", err)
	}
	if in.traffic.Multicast > 0 {
		if in.traffic.Sources, err = in.sources.Of(sim.CountSenders(trees)); err != nil {
			return nil, in.wrong("sources", "%w", err)
		}
	}
	loads := in.loads
	if in.given("burst") {
		loads = []float64{0}
	}
	for _, bytes := range in.bytes {
		if err := in.fits(bytes, vls); err != nil {
			return nil, in.wrong("bytes", "%w", err)
		}
		for _, load := range loads {
			for i := range routings {
				for _, seed := range in.seeds {
					p := routings[i].parameters()
					p.Load, p.Bytes, p.Seed = load, bytes, seed
					r.points = append(r.points, p)
				}
			}
		}
	}
	return r, nil
}

// mostLanes is the most VLs that routings have, for all of which there have to be weights.
func (in *simulation) mostLanes(routings []simRouting) (vls int, err error) {
	for i := range routings {
		vls = max(vls, routings[i].net.VLs())
	}
	if len(in.cfg.VLWeights) > 0 && len(in.cfg.VLWeights) < vls {
		err = in.wrong("vl-weights", "%s for %s", text.CountGrouped(len(in.cfg.VLWeights), "weight", "weights"), text.CountGrouped(vls, "VL", "VLs"))
	}
	return vls, err
}

// noteLanes says which flags have no effect with that number of VLs.
func (a *app) noteLanes(in *simulation, vls int) {
	for _, flag := range []string{"sls", "vl-weights"} {
		if vls == 1 && in.given(flag) {
			fmt.Fprintf(a.stderr, "ibweave: --%s has no effect here: the tables have one virtual lane, so that no packet overtakes another; compile --vls N makes more\n", flag)
		}
	}
}

// readTrace makes the one point of a trace.
func (a *app) readTrace(r *simRun, vls int) error {
	in := r.in
	data, err := a.reader(&in.audit).ReadFile(in.trace)
	if err != nil {
		return err
	}
	if r.trace, err = sim.ReadTrace(in.trace, data, r.net.Fabric); err != nil {
		return err
	}
	if len(r.trace) == 0 {
		return inputf("%s has no message", in.trace)
	}
	longest := slices.MaxFunc(r.trace, func(x, y sim.Timed) int { return cmp.Compare(x.Bytes, y.Bytes) }).Bytes
	if err := in.fits(longest, vls); err != nil {
		return inputf("%s: %w", in.trace, err)
	}
	for i := range r.routings {
		p := r.routings[i].parameters()
		p.Bytes = longest
		r.points = append(r.points, p)
	}
	return nil
}

// longest is the most bytes of data in a packet of messages of the given size.
func (in *simulation) longest(bytes int) int {
	if in.traffic.Lengths == sim.Geometric && in.trace == "" {
		bytes = in.traffic.MaxBytes
		if bytes == 0 {
			bytes = math.MaxInt32 // cut to the MTU
		}
	}
	if in.cfg.MTU > 0 {
		return min(bytes, in.cfg.MTU)
	}
	return bytes
}

// config is the hardware for messages of the given bytes and number of VLs.
func (in *simulation) config(bytes, vls int) sim.Config {
	cfg := in.cfg
	switch {
	case in.packets > 0:
		cfg.PacketBuffers(in.packets, in.longest(bytes))
	case in.flits > 0:
		cfg.BufferFlits = in.flits
	default:
		cfg.DivideBuffer(in.buffer, vls)
	}
	return cfg
}

// fits says what is wrong when the buffer of a VL has no room for a packet.
func (in *simulation) fits(bytes, vls int) error {
	cfg := in.config(bytes, vls)
	room, most := cfg.FlitBytes*cfg.BufferFlits, in.longest(bytes)+cfg.HeaderBytes
	if cfg.Copying < sim.Wormhole && most > room || room == 0 {
		return fmt.Errorf("a packet of %d bytes does not fit a buffer of %d flits of %d bytes: want a smaller --mtu, or a larger --buffer", most, cfg.BufferFlits, cfg.FlitBytes)
	}
	return nil
}

// key is what the results depend on.
func (r *simRun) key() any {
	in := r.in
	input := map[string]string{}
	for flag := range fileFlags {
		if sum, ok := in.Sums[in.flags.Lookup(flag).Value.String()]; ok {
			input[flag] = sum
		}
	}
	return struct {
		Version    string            `json:"version"`
		Parameters map[string]string `json:"parameters"`
		Input      map[string]string `json:"input"`
	}{version + cli.Revision(), r.parameters(), input}
}

// parameters are the flags that decide what the results are.
func (r *simRun) parameters() map[string]string {
	m := map[string]string{}
	r.in.flags.VisitAll(func(f *pflag.Flag) {
		if !ownFlags[f.Name] && !fileFlags[f.Name] {
			m[f.Name] = f.Value.String()
		}
	})
	return m
}

// simulate runs a point.
func (r *simRun) simulate(ctx context.Context, i int) (sim.Result, error) {
	p := r.points[i]
	traffic, stop := r.in.traffic, r.in.stop
	traffic.Pattern, traffic.Trees = r.in.pattern, r.trees
	traffic.Load, traffic.Bytes, traffic.Seed = p.Load, p.Bytes, p.Seed
	x := r.routing(p.Routing)
	net := x.net
	traffic.SLs = x.sls
	cfg := r.in.config(p.Bytes, net.VLs())
	var m *sim.Measured
	var err error
	switch {
	case r.trace != nil:
		m, err = sim.Play(ctx, net, cfg, r.trace, stop.MaxTime)
	case r.in.burst > 0:
		m, err = sim.Burst(ctx, net, cfg, traffic, r.in.burst, stop.MaxTime)
	default:
		gap := traffic.Gap(r.mbps)
		if stop.WarmUp == 0 {
			stop.WarmUp = 20 * gap
		}
		if stop.MaxTime == 0 {
			stop.MaxTime = stop.WarmUp + max(2000, 20*sim.Time(stop.MinMessages)/sim.Time(r.hosts))*gap
		}
		if stop.MaxTime <= stop.WarmUp {
			return sim.Result{}, r.in.wrong("max-time", "%s is not after the warm-up, which takes %s", stop.MaxTime, stop.WarmUp)
		}
		m, err = sim.Measure(ctx, net, cfg, traffic, stop)
	}
	deadlock, isDeadlock := errors.AsType[*sim.DeadlockError](err)
	switch {
	case isDeadlock:
		return deadlock.Result(), nil
	case err == nil:
		return m.Result(r.in.loads == nil), nil
	case is[*sim.ConservationError](err), ctx.Err() != nil:
		return sim.Result{}, err
	}
	if r.in.file != "" {
		return sim.Result{}, inputf("%s: %w", r.in.file, err)
	}
	return sim.Result{}, &usageError{err}
}

// maxPoints is the most values that a list may have.
const maxPoints = 100_000

// leastLoad is one message in minutes; time and memory are without end far below.
const leastLoad = 1e-6

// parseLoads reads "0.1,0.2:0.9:0.1".
func parseLoads(item string) ([]float64, error) {
	bad := errors.New("want loads from 0.000001 to 1000, or FIRST:LAST:STEP such as 0.1:0.9:0.1")
	var n [3]float64
	parts := strings.Split(item, ":")
	if len(parts) != 1 && len(parts) != 3 {
		return nil, bad
	}
	for i, part := range parts {
		var err error
		if n[i], err = strconv.ParseFloat(part, 64); err != nil || !(n[i] >= leastLoad && n[i] <= 1000) {
			return nil, bad
		}
	}
	if len(parts) == 1 {
		return n[:1], nil
	}
	// Loads are as short as those that are written: 0.3, not 0.30000000000000004.
	short := func(x float64) float64 { return math.Round(x*1e9) / 1e9 }
	steps := math.Floor((n[1]-n[0])/n[2] + 1e-9)
	if steps < 0 || steps >= maxPoints || short(n[2]) == 0 {
		return nil, bad
	}
	var loads []float64
	for i := range int(steps) + 1 {
		loads = append(loads, short(n[0]+float64(i)*n[2]))
	}
	return loads, nil
}

// wholeNumbers reads the items of a list of numbers; want says what they may be.
func wholeNumbers[T int | uint8 | uint64](want string, allowed func(n uint64) bool) func(item string) ([]T, error) {
	return func(item string) ([]T, error) {
		n, err := strconv.ParseUint(item, 10, 64)
		if err != nil || !allowed(n) {
			return nil, errors.New("want " + want)
		}
		return []T{T(n)}, nil
	}
}

var (
	parseSizes   = wholeNumbers[int](fmt.Sprintf("1 to %d bytes", 1<<30), func(n uint64) bool { return n >= 1 && n <= 1<<30 })
	parseLanes   = wholeNumbers[int]("1, 2, 4, 8 or 15 virtual lanes", func(n uint64) bool { return slices.Contains([]uint64{1, 2, 4, 8, 15}, n) })
	parseSeeds   = wholeNumbers[uint64]("a number from 0 on", func(uint64) bool { return true })
	parseWeights = wholeNumbers[uint8]("1 to 255", func(n uint64) bool { return n >= 1 && n <= math.MaxUint8 })
)

// share defines a flag for a part of something, and the default that is in *to.
func (in *simulation) share(to *float64, name string, least, most float64, usage string) {
	parsedFlag(in.flags, to, name, plain(*to), usage, within(least, most))
}

func (in *simulation) time(to *sim.Time, name, usage string) {
	parsedFlag(in.flags, to, name, to.String(), usage, sim.ParseTime)
}
