package main

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/ibweave/ibweave/audit/experiment"
	"github.com/ibweave/ibweave/audit/jobs"
	"github.com/ibweave/ibweave/cmd/cli"
	"github.com/ibweave/ibweave/compile"
	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/sim"
	"github.com/ibweave/ibweave/state/open"
)

type simulation struct {
	audit
	flags *pflag.FlagSet

	experiment.Setup
	jobTraffic
	ranks    ranks
	engine   string   // makes the tables of -t; "" chooses one
	engines  []string // engines to compare; nil for none
	vls      []int    // VLs to compare; nil for those of the tables
	adaptive string   // --adaptive; "" for static tables alone
	router   string   // --router, without tables; "" for tables
	roots    []string // of the router's spanning tree, at most one; nil for the centre
	tree     string   // how the tree grows: bfs or dfs
	svg, png string   // files; "" for none

	jobs   int
	output string
	format string
}

// jobTraffic has the flags of sim about jobs.
type jobTraffic struct {
	file  string   // file of jobs; "" for other traffic
	scale float64  // part of the bytes; 0 chooses it
	mcast []string // multicast schemes; nil for none
	radix int      // of --sharp; 0 for none
	top   int      // cables that text lists
	fit   bool     // --fit: compare tables fitted to the jobs, too
	jobs  *jobs.File
}

// ranks has the flags that set which hosts take part, and in which order.
type ranks struct {
	hosts string // names, "" for all
	file  string // --rank-file, "" for none
	order sim.RankOrder
}

func (in *simulation) defineTraffic() {
	flags, t := in.flags, &in.Setup.Traffic
	cli.ListFlag(flags, &in.Loads, "load", "", "open loop: share of its link's data rate that each host offers, in bytes of data; `LIST` of numbers and FIRST:LAST:STEP", parseLoads)
	cli.NumberFlag(flags, &in.Burst, "burst", 0, 1<<20, "closed loop: each host sends `N` messages at once")
	cli.ParsedFlag(flags, &in.Pattern, "pattern", "uniform", "`PATTERN` of unicast: uniform, permutation[:SEED], bisection[:SEED], shift:BY, hot-spot:HOST:SHARE, alltoall[:GROUP], allreduce-ring, reduce-scatter, all-gather, allreduce-tree, broadcast, halo[:AxBxC]; hosts count from 0", sim.ParsePattern)
	flags.StringVar(&in.ranks.hosts, "hosts", "", "hosts that send and receive, `LIST` of names or n[001-064]; their ports are ranks in this order; by default all of the fabric")
	flags.StringVar(&in.ranks.file, "rank-file", "", "the same from `FILE`: names of hosts in the order of ranks, # begins a comment")
	cli.ParsedFlag(flags, &in.ranks.order, "rank-order", "listed", "`ORDER` of ranks: listed, leaf by leaf (leaf), or random[:SEED]", sim.ParseRankOrder)
	cli.ListFlag(flags, &in.Bytes, "bytes", "256", "length of messages, `LIST`", parseSizes)
	flags.TextVar(&t.Arrivals, "arrivals", sim.Poisson, "`TIMES` between messages: poisson, deterministic")
	in.share(&t.Multicast, "multicast", "share of messages that go to groups, `0 to 1`")
	cli.ParsedFlag(flags, &in.Sources, "sources", "all", "hosts that do, of those that may send to groups: one, all, `N` or N%", sim.ParseSources)
	flags.BoolVar(&t.Repeat, "repeat", false, "multicast as one unicast message for each receiver, by ascending LIDs")
	cli.NumberFlag(flags, &t.SLs, "sls", 0, 16, "spread messages over SL 0 to `N`-1 by host and count; 0 takes SLs of paths and groups")
	cli.NumberFlag(flags, &t.Flows, "flows", 0, 1<<20, "flows between two hosts: messages are of flow 0 to `N`-1 in turn; 0 is 1")
	cli.ListFlag(flags, &in.Seeds, "seed", "1", "seed of everything random, `LIST`", parseSeeds)

	in.time(&in.Stop.WarmUp, "warm-up", "`TIME` that is not measured; 0ns is that of 20 messages of each host")
	in.Stop.RelativeError = 0.02
	in.share(&in.Stop.RelativeError, "error", "stop when the mean latency is known to this `SHARE` of itself with 95 % confidence; 0 goes on to --max-time")
	in.Stop.MinMessages, in.Stop.MaxQueue = 10_000, 1000
	cli.NumberFlag(flags, &in.Stop.MinMessages, "min-messages", 1, 1<<40, "and `N` messages at least have arrived")
	in.time(&in.Stop.MaxTime, "max-time", "stop at this `TIME` in any case; 0ns is that of 2000 messages of each host, or of 20 times --min-messages, and never with --burst")
	cli.NumberFlag(flags, &in.Stop.MaxQueue, "max-queue", 1, 1<<30, "stop as saturated when hosts have `N` packets more waiting, on average, than after the warm-up")
}

func (in *simulation) defineJobs() {
	flags, j := in.flags, &in.jobTraffic
	flags.StringVar(&j.file, "traffic", "", "simulate the jobs of YAML `FILE` (docs/traffic.md)")
	in.share(&j.scale, "scale", "`PART` of the bytes of --traffic, up to 1; 0 takes as many halves of it as leave a million packets, or four a message")
	cli.ListFlag(flags, &j.mcast, "mcast", "", "compare with broadcasts and all-gathers by multicast, on trees of `LIST`: "+compile.MulticastSchemeNames(), func(s string) ([]string, error) {
		return []string{s}, compile.CheckMulticastScheme(s)
	})
	cli.NumberFlag(flags, &j.radix, "sharp", 2, jobs.MostRadix,
		"compare with all-reduces that switches add up, on trees as SHARP has them, with `N` children of a switch at most")
	flags.BoolVar(&j.fit, "fit", false, "compare with the tables that compile --traffic makes for these jobs")
	cli.NumberFlag(flags, &j.top, "top", 0, 1<<20, "of --traffic: list the `N` cables that are waited for most")
}

func (in *simulation) defineHardware() {
	flags, c := in.flags, &in.Config
	cli.NumberFlag(flags, &c.Mbps, "mbps", 0, 1<<30, "data rate of all links, `N` megabits a second; 0 takes each link's own")
	in.time(&c.WireDelay, "wire-delay", "`TIME` along a cable")
	in.time(&c.CreditDelay, "credit-delay", "`TIME` from when a packet has left a buffer until the sender behind it knows")
	in.time(&c.RoutingDelay, "routing-delay", "`TIME` from when a packet's first byte enters a switch until it asks for its way out")
	in.time(&c.Startup, "startup", "`TIME` that a host takes to start a message")
	cli.NumberFlag(flags, &c.FlitBytes, "flit-bytes", 1, 1<<20, "bytes of a flit, which buffers and credits count in")
	cli.NumberFlag(flags, &in.Buffer, "buffer", 1, 1<<30, "`BYTES` of input buffer of each port of a switch, in equal parts for its VLs")
	cli.NumberFlag(flags, &in.Flits, "buffer-flits", 0, 1<<30, "instead: `N` flits for each port and VL")
	cli.NumberFlag(flags, &in.Packets, "buffer-packets", 0, 1<<20, "instead: room for `N` of the longest packets for each port and VL, and flits of 64 bytes or less")
	cli.NumberFlag(flags, &c.OutputFlits, "output-flits", 0, 1<<20, "flits in the output buffer of each port and VL, with wormhole copying")
	cli.NumberFlag(flags, &c.MTU, "mtu", 0, 1<<30, "most bytes of data in a packet, `N`; 0 sends every message as one")
	cli.NumberFlag(flags, &c.HeaderBytes, "header-bytes", 0, 1<<20, "bytes added to each packet")
	flags.TextVar(&c.Copying, "copying", sim.Independent, "`HOW` switches copy and forward: independent as InfiniBand does, reserving, lock-step, wormhole, greedy-wormhole")
	flags.TextVar(&c.Arbitration, "arbitration", sim.RoundRobin, "`RULE` for the input that goes next: round-robin, fifo, lowest-port")
	flags.TextVar(&c.Choice, "choice", sim.LeastQueued, "`HOW` adaptive switches choose for a packet: least-queued, most-credits")
	flags.BoolVar(&c.ChooseAgain, "choose-again", false, "a packet that is blocked takes the first port of its choice that is free")
	cli.NumberFlag(flags, &c.FullChecks, "full-checks", 0, 1<<40, "count all flits and credits again every `N` events; 0 checks them as they move")
}

// defineScopes sets the conditions under which flags have an effect.
func (in *simulation) defineScopes() {
	cli.Scopes(in.flags,
		cli.Scope{Flags: "fit mcast scale sharp top", With: "traffic", Why: "they are about its jobs"},
		cli.Scope{Flags: "host-groups", With: "traffic", Why: "its jobs may name groups"},
		cli.Scope{Flags: "buffer", Not: "buffer-flits buffer-packets", Why: "each lane has its own buffer then"},
		cli.Scope{Flags: "choice choose-again", With: "adaptive far", Not: "adaptive=hbf", Why: "packets have no choice then"},
		cli.Scope{Flags: "flit-bytes", Not: "buffer-packets", Why: "flits are of 64 bytes then, or of the packet", Note: true},
		cli.Scope{Flags: "png svg", With: "adaptive far engines vls traffic", Why: "the picture compares routings"},
		cli.Scope{Flags: "flows", With: "adaptive far", Not: "traffic", Why: "only adaptive tables tell flows apart"},
		cli.Scope{Flags: "bytes hosts multicast rank-file", Not: "traffic", Why: "the file says what is sent"},
		cli.Scope{Flags: "rank-order", With: "pattern", Why: "uniform traffic is the same in any order", Note: true},
		cli.Scope{Flags: "pattern", Not: "traffic multicast=1", Why: "there is no unicast to choose receivers for"},
		cli.Scope{Flags: "repeat sources", With: "multicast", Why: "the share of messages that go to groups"},
		cli.Scope{Flags: "arrivals error max-queue min-messages warm-up", With: "load", Why: "only open loop is measured so", Note: true},
		cli.Scope{Flags: "roots tree", With: "router", Why: "only that has a spanning tree"},
		cli.Scope{Flags: "output-flits", With: "copying=wormhole|greedy-wormhole router"})
}

// share defines a flag for a part, 0 to 1, with the default in *to.
func (in *simulation) share(to *float64, name, usage string) {
	cli.ParsedFlag(in.flags, to, name, cli.Plain(*to), usage, cli.Within(0.0, 1))
}

func (in *simulation) time(to *sim.Time, name, usage string) {
	cli.ParsedFlag(in.flags, to, name, to.String(), usage, sim.ParseTime)
}

// maxPoints is the most steps of FIRST:LAST:STEP.
const maxPoints = 100_000

// leastLoad is a message every few minutes; with far less, simulations would not end.
const leastLoad = 1e-6

// parseLoads reads one item of --load: a load such as 0.1, or FIRST:LAST:STEP.
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
	// Loads get as few digits as people write: 0.3, not 0.30000000000000004.
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

// wholeNumbers returns a parser of numbers that allowed accepts; its error names want.
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
	parseSizes = wholeNumbers[int](fmt.Sprintf("1 to %d bytes", 1<<30), func(n uint64) bool { return n >= 1 && n <= 1<<30 })
	parseLanes = wholeNumbers[int]("1, 2, 4, 8 or 15 virtual lanes", func(n uint64) bool { return slices.Contains([]uint64{1, 2, 4, 8, 15}, n) })
	parseSeeds = wholeNumbers[uint64]("a number from 0 on", func(uint64) bool { return true })
)

// check returns an error if flags are wrong or do not fit together.
func (in *simulation) check(args []string) error {
	kinds := text.CountIf([]string{"load", "burst", "traffic"}, in.given)
	files := in.Topology != "" || in.HasTables() || in.PLFT != ""
	if in.router != "" {
		if err := in.checkRouter(args); err != nil {
			return err
		}
	}
	switch {
	case kinds != 1:
		return usagef("sim needs one kind of traffic: --load LIST, --burst N or --traffic FILE")
	case in.given("burst") && in.Burst == 0:
		return wrong("burst", "0 messages: want 1 or more")
	case in.engine != "" && (len(args) > 0 || in.HasTables()):
		return wrong("engine", "routes a topology, and there are tables: want -t FILE alone, or no -e")
	case in.engines != nil && (len(args) > 0 || in.HasTables()):
		return wrong("engines", "route a topology, and there are tables: want -t FILE alone, or no --engines")
	case in.engines != nil && in.engine != "":
		return wrong("engines", "say the same as --engine: want one of them")
	case in.jobTraffic.fit && !in.routed(args):
		return wrong("fit", "makes tables, and they were given: want -t FILE with --engines or -e")
	case in.routed(args) && (in.SL2VL != "" || in.PathSLs != "" || in.MFTs != ""):
		return usagef("the engine makes all tables: want no --sl2vl, --path-sl and --mfts beside -t FILE")
	case !in.routed(args) && in.router == "" && len(args) == 0 && (in.Topology == "" || !in.HasTables()):
		return usagef("sim needs a directory that compile wrote, or -t TOPOLOGY and --lfts FILE, or -t TOPOLOGY and -e ENGINE")
	case len(args) > 0 && (files || in.SL2VL != "" || in.PathSLs != "" || in.MFTs != ""):
		return usagef("sim takes a directory or -t and --lfts, not both")
	case in.Packets > 0 && in.Flits > 0:
		return wrong("buffer-packets", "says the same as --buffer-flits: want one of them")
	case in.ranks.hosts != "" && in.ranks.file != "":
		return wrong("rank-file", "says the same as --hosts: want one of them")
	case in.jobTraffic.file != "" && in.Groups != "":
		return wrong("groups", "are for --load and --burst: jobs have groups of their own")
	case in.jobTraffic.file != "" && len(in.Seeds) > 1:
		return wrong("seed", "%d seeds: want one for --traffic", len(in.Seeds))
	}
	return cli.OneStdin(in.Topology, in.LFTs, in.SL2VL, in.PathSLs, in.MFTs, in.FAR, in.PLFT, in.Groups, in.ranks.file, in.jobTraffic.file)
}

const routerSPAM = "spam"

// checkRouter returns an error if --router does not fit other flags.
func (in *simulation) checkRouter(args []string) error {
	switch {
	case in.router != routerSPAM:
		return wrong("router", "%q: want %s", in.router, routerSPAM)
	case len(args) > 0 || in.Topology == "" || in.HasTables() || in.SL2VL != "" || in.PathSLs != "" || in.MFTs != "" || in.routed(args):
		return wrong("router", "takes the place of tables and engines: want -t FILE alone")
	case in.jobTraffic.file != "":
		return wrong("router", "is for --load and --burst: jobs go by tables")
	case !in.given("copying"):
		in.Config.Copying = sim.Wormhole
	case in.Config.Copying != sim.Wormhole && in.Config.Copying != sim.GreedyWormhole:
		return wrong("router", "simulates worms: want --copying wormhole, its default, or greedy-wormhole, which can deadlock")
	}
	return nil
}

// routed returns true if sim makes tables: with -t
// FILE, no file of tables, and a flag that needs them.
func (in *simulation) routed(args []string) bool {
	return len(args) == 0 && in.Topology != "" && !in.HasTables() &&
		(in.engine != "" || in.engines != nil || in.adaptive != "" || in.vls != nil || in.jobTraffic.fit)
}

// choices lists how switches choose in the routings that are compared; nil without choices.
func (in *simulation) choices() []string {
	switch {
	case in.adaptive == "all":
		return []string{experiment.Static, experiment.Free, experiment.HBF}
	case in.adaptive != "":
		return []string{experiment.Static, in.adaptive}
	case in.FAR != "":
		return []string{experiment.Static, experiment.AsRead}
	}
	return nil
}

// lanes returns the list of --vls, or one 0 without it.
func (in *simulation) lanes() []int {
	if in.vls == nil {
		return []int{0}
	}
	return in.vls
}

// spread returns --sls, -1 without it.
func (in *simulation) spread() int {
	if in.given("sls") {
		return in.Setup.Traffic.SLs
	}
	return -1
}

// given returns true if the command line has the flag.
func (in *simulation) given(flag string) bool { return in.flags.Changed(flag) }

// checkPictures refuses pictures if there is only one routing.
func (in *simulation) checkPictures(routings int) error {
	for _, picture := range []string{"svg", "png"} {
		if in.given(picture) && routings == 1 {
			return usagef("--%s compares routings, and there is one: want two --engines or --vls, or --adaptive", picture)
		}
	}
	return nil
}

// onlyOnce refuses two routings of the same name.
func (in *simulation) onlyOnce(list []experiment.Routing) error {
	flag, seen := "vls", make(map[string]bool)
	if in.engines != nil {
		flag = "engines"
	}
	for i := range list {
		name := list[i].Name()
		if scheme := list[i].Multicast; seen[name] && scheme != "" { // unicast alone is in the list once
			return wrong("mcast", "%s twice: want each once", scheme)
		}
		if seen[name] {
			return wrong(flag, "%s twice: want each once", name)
		}
		seen[name] = true
	}
	return nil
}

// noteLanes tells that --sls has no effect with one VL.
func (a *app) noteLanes(in *simulation, routings []experiment.Routing) {
	if in.given("sls") && !slices.ContainsFunc(routings, func(x experiment.Routing) bool { return x.Net.VLs() > 1 }) {
		fmt.Fprintln(a.stderr, "ibweave: --sls has no effect here: the tables have one virtual lane, so that no packet overtakes another; compile --vls N makes more")
	}
}

// setting turns a SettingError into wrong usage of its flag, other errors into wrong input.
func (in *simulation) setting(err error) error {
	x, ok := errors.AsType[*experiment.SettingError](err)
	switch {
	case err == nil:
		return nil
	case !ok:
		return open.NewError(err)
	}
	return wrong(x.Setting, "%w", x.Err)
}

// ownFlags are the flags that set how sim runs, and do not change its results.
var ownFlags = map[string]bool{
	"jobs": true, "output": true, "format": true, "svg": true, "png": true,
	"help": true, "log-level": true, "log-format": true, "color": true, "strict": true,
}

// inputFlags are the flags that name files to read.
var inputFlags = map[string]bool{
	"topology": true, "lfts": true, "sl2vl": true, "path-sl": true, "mfts": true, "far": true, "plft": true,
	"groups": true, "traffic": true, "host-groups": true, "rank-file": true, "node-name-map": true,
}

// parameters returns the flags on which the results depend.
func (in *simulation) parameters() map[string]string {
	m := map[string]string{}
	in.flags.VisitAll(func(f *pflag.Flag) {
		if !ownFlags[f.Name] && !inputFlags[f.Name] {
			m[f.Name] = f.Value.String()
		}
	})
	return m
}
