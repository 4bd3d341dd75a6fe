package main

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/fabric/topology"
	"github.com/ibweave/ibweave/internal/files"
	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/mesh"
	"github.com/ibweave/ibweave/routing/banyan"
	"github.com/ibweave/ibweave/sminterface/dump"
	"github.com/ibweave/ibweave/sminterface/ibdiagnet"
)

// generator is gen: kinds of fabrics are its commands.
type generator struct {
	*app
	cmd    *cobra.Command
	output string
	format string
	change gen.Options
	speeds []string
}

// genCommand makes fabrics.
func (a *app) genCommand() *cobra.Command {
	g := &generator{app: a}
	g.cmd = &cobra.Command{
		Use:   "gen KIND",
		Short: "make a fabric: a tree, mesh, torus, directors, ..",
		Long: `Make a fabric and write it as ibnetdiscover text, which ibsim loads, or with
--format ibdiagnet2 as the directory that ibdiagnet writes: db_csv, lst and
ibnetdiscover text. --format lst is the list of links that OpenSM writes,
opensm-subnet.lst.

The same kind, flags and seed give the same bytes. Switches have the GUIDs from
0x200000 on, channel adapters those from 0x100000 on, aggregation nodes those from
0x300000 on; no port has a LID.

Options after the kind make any kind like fabrics that operators have.`,
		Example: `  ibweave gen fattree --radix 8 --levels 2 -o fat.ibnetdiscover
  ibweave gen fattree --radix 8 --format ibdiagnet2 -o ibdiagnet2
  ibweave gen fattree --radix 40 --aggregation-nodes -o sharp.ibnetdiscover
  ibweave gen tree --leaves 4 --rails 8 --hosts 32 --spines 16 --parallel 2 --ports 64 -o rails.ibnetdiscover
  ibweave gen mesh --dims 16x16 | ibweave compile -t - -e updn -o tables`,
		Args: a.noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return usagef("gen needs a KIND: %s", strings.Join(kindNames(cmd), ", "))
		},
	}
	flags := g.cmd.PersistentFlags()
	flags.StringVarP(&g.output, "output", "o", "-", "`FILE` to write, a directory for ibdiagnet2; - is standard output")
	flags.StringVar(&g.format, "format", "ibnetdiscover", "`FORM` of what is written: "+genFormats())
	o := &g.change
	flags.IntVar(&o.SwitchPorts, "switch-ports", 0, "give each switch `N` ports at least")
	flags.IntVar(&o.Fill, "fill", 100, "take random hosts away, so that `PERCENT` of 100 stay and one on each switch that has hosts")
	flags.IntVar(&o.ServiceHosts, "service-hosts", 0, "put `N` hosts on free ports of switches above those with hosts")
	flags.IntVar(&o.Planes, "planes", 1, "make `N` chips of each switch and N ports of each port of an adapter; a cable has a lane to each")
	flags.IntVar(&o.DropLinks, "drop-links", 0, "take `N` random switch-to-switch links away, without disconnecting")
	flags.StringSliceVar(&g.speeds, "speed", nil, "speeds of switches, `QDR..XDR`; of several each switch has one at random, a cable that of its slower end")
	flags.BoolVar(&o.Labels, "labels", false, "write what is printed beside the ports, as ibdiagnet does; ibsim does not load that")
	flags.BoolVar(&o.Split, "split", false, "write the labels of split ports")
	flags.StringVar(&o.Names, "names", "", "how nodes describe themselves: `STYLE` site, factory or mixed; without it, where in the made fabric they are")
	flags.BoolVar(&o.AggregationNodes, "aggregation-nodes", false, "give each switch a port more, with the channel adapter of a SHARP aggregation node")
	flags.Uint64Var(&g.change.Seed, "seed", 1, "seed of everything random")
	g.addGrid("mesh", "n-dimensional mesh", false)
	g.addGrid("torus", "n-dimensional torus: a mesh with all dimensions wrapped", true)
	g.addHypercube()
	g.addFatTree()
	g.addTree()
	g.addDirector()
	g.kind("myrinet4", "four switches in a ring with eight hosts", func([]string) (*fabric.Fabric, error) { return gen.Myrinet4() })
	g.addNetworks()
	return g.cmd
}

// kind adds a kind of fabrics.
func (g *generator) kind(use, short string, make func([]string) (*fabric.Fabric, error)) *cobra.Command {
	c := &cobra.Command{
		Use:     use,
		Short:   short,
		Long:    kindHelp[use].about,
		Example: "  ibweave gen " + use + kindHelp[use].flags,
		Args:    g.noArgs,
		RunE: func(_ *cobra.Command, args []string) error {
			form, known := genForms[g.format]
			switch {
			case !known && g.format != runFormat:
				return usagef("--format %q: want %s", g.format, genFormats())
			case !known && g.output == "-":
				return usagef("--format ibdiagnet2 is a directory: want -o DIR")
			}
			f, err := make(args)
			if err != nil {
				return &usageError{err}
			}
			if g.change.Speeds, err = parseSpeeds(g.speeds); err != nil {
				return &usageError{err}
			}
			if f, err = g.change.Apply(f); err != nil {
				return &usageError{err}
			}
			if g.change.Labels && g.format == "ibnetdiscover" {
				form = topology.AppendLabelled
			}
			if g.format == runFormat {
				err = writeRun(f, g.output)
			} else {
				err = g.writeOutput(g.output, form(nil, f))
			}
			if err == nil && g.output != "-" {
				fmt.Fprintf(g.stdout, "wrote %s: %s\n", g.output, fabricSize(f))
			}
			return err
		},
	}
	g.cmd.AddCommand(c)
	return c
}

// kindHelp is what kinds of fabrics say of themselves, and flags of an example.
var kindHelp = map[string]struct{ about, flags string }{
	"mesh": {`Make a mesh: switches on the points of a grid, a cable to each neighbour, and
hosts on each switch. --wrap closes dimensions to rings. Port 1 of a switch
leads east, 2 north, 3 west, 4 south, then those of further dimensions follow,
then the hosts.`, " --dims 16x16 -o mesh.txt"},
	"torus":     {"Make a torus: a mesh all of whose dimensions are rings.", " --dims 8x8x8 -o torus.txt"},
	"hypercube": {"Make a hypercube of 2^N switches, each with a cable to the N others whose\nnumbers differ in one bit.", " --dim 6 -o cube.txt"},
	"fattree":   {"Make a full fat tree of two or three levels. All its switches have\n--radix ports.", " --radix 36 --levels 3 -o tree.txt"},
	"tree": {`Make a tree as sites have it: pods of leaves and spines, and core switches
above them. Hosts can have an adapter on each of several rails. Flags add what
is seen at sites: a pod that is half cabled, leaves for management, spare core
switches.`, " --leaves 4 --rails 8 --hosts 32 --spines 16 --parallel 2 --ports 64 -o rails.txt"},
	"director": {`Make directors: chassis with line chips and spine chips. Leaves are cabled to
the line chips, or with --line-chips 0 the leaves are the line chips, with hosts
on them.`, " --directors 2 --pods 2 --leaves 4 -o directors.txt"},
	"myrinet4": {"Make four switches of 8 ports in a ring, with two hosts on each.", " -o ring.txt"},
	"shufflenet": {`Make a shufflenet: K columns of P^K switches, each with cables to P switches of
the next column, and the last column with the first. Each switch has one host.`, " --p 2 --k 3 -o shufflenet.txt"},
	"lattice": {`Make an irregular network: switches of 8 ports on random points of a lattice, a
cable between any two on neighbouring points, and one host on each switch. The
paper on SPAM measures such networks.`, " --switches 128 --seed 3 -o lattice.txt"},
	"banyan": {`Make a banyan network: N stages of 2x2 switches between 2^N processors. Each
processor sends with one adapter and receives with another, or with
--wrap-around uses one for both.`, " --stages 4 -o banyan.txt"},
	"irregular": {`Make a connected random network in which every switch has the same number of
cables to other switches. The hosts are spread over the switches.`, " --switches 64 --degree 5 --hosts 256 -o random.txt"},
}

// runFormat is the --format of a run of ibdiagnet.
const runFormat = "ibdiagnet2"

// genForms are the other forms that --format names.
var genForms = map[string]func([]byte, *fabric.Fabric) []byte{
	"ibnetdiscover": topology.Append,
	"lst": func(b []byte, f *fabric.Fabric) []byte {
		out := bytes.NewBuffer(b)
		_ = dump.WriteSubnetList(out, f) // whose errors are those of the writer
		return out.Bytes()
	},
}

// genFormats lists what --format can be.
func genFormats() string {
	names := slices.Sorted(maps.Keys(genForms))
	return strings.Join(append([]string{runFormat}, names...), ", ")
}

func (g *generator) addGrid(use, short string, torus bool) {
	var (
		dims  string
		wrap  string
		hosts int
	)
	c := g.kind(use, short, func(args []string) (*fabric.Fabric, error) {
		spec := mesh.Spec{Hosts: hosts}
		var err error
		if spec.Dims, err = parseDims(dims); err != nil {
			return nil, err
		}
		if len(args) == 1 { // --wrap x,y: an optional value needs no = here
			if wrap != wrapAll {
				return nil, fmt.Errorf("unexpected argument %q", args[0])
			}
			wrap = args[0]
		}
		if torus {
			wrap = wrapAll
		}
		if spec.Wrap, err = parseWrap(wrap, len(spec.Dims)); err != nil {
			return nil, err
		}
		return mesh.Generate(spec)
	})
	c.Flags().StringVar(&dims, "dims", "", "switches along each dimension, `AxB[xC..]`, x first")
	c.Flags().IntVar(&hosts, "hosts", 1, "hosts on each switch")
	g.require(c, "dims")
	if !torus {
		c.Args = g.maxArgs(1)
		c.Flags().StringVar(&wrap, "wrap", "", "make rings of all dimensions, or of the named ones: `x,y,z` or numbers from 1")
		c.Flags().Lookup("wrap").NoOptDefVal = wrapAll
	}
}

func (g *generator) addHypercube() {
	var dim, cubeHosts int
	c := g.kind("hypercube", "hypercube", func([]string) (*fabric.Fabric, error) { return mesh.Hypercube(dim, cubeHosts) })
	c.Flags().IntVar(&dim, "dim", 0, "dimensions")
	c.Flags().IntVar(&cubeHosts, "hosts", 1, "hosts on each switch")
	g.require(c, "dim")
}

func (g *generator) addFatTree() {
	var tree gen.FatTreeSpec
	c := g.kind("fattree", "fat tree of two or three levels", func([]string) (*fabric.Fabric, error) { return gen.FatTree(tree) })
	c.Flags().IntVar(&tree.Radix, "radix", 0, "ports of each switch, an even number")
	c.Flags().IntVar(&tree.Levels, "levels", 2, "levels of switches, 2 or 3")
	c.Flags().IntVar(&tree.HostsPerLeaf, "hosts-per-leaf", 0, "hosts on each leaf; half the radix when not given")
	g.require(c, "radix")
}

// addTree adds the tree of leaves, spines and core switches.
func (g *generator) addTree() {
	var tree gen.TreeSpec
	c := g.treeKind("tree", "tree of pods below core switches, as sites have it", &tree, func() (*fabric.Fabric, error) { return gen.Tree(tree) })
	c.Flags().IntVar(&tree.Rails, "rails", 1, "adapters of each host, each on a leaf of its own, so that each of --leaves is this many leaves")
	c.Flags().IntVar(&tree.Spines, "spines", 10, "spines of each pod")
	c.Flags().BoolVar(&tree.RailSpines, "rail-spines", false, "give each rail of a pod spines of its own")
	c.Flags().IntVar(&tree.Parallel, "parallel", 1, "cables between a leaf and each spine of its pod")
	c.Flags().IntVar(&tree.Groups, "groups", 0, "groups of core switches, each above as many spines of each pod; as many as spines when not given")
	c.Flags().IntVar(&tree.Cores, "cores", 0, "core switches of each group")
	c.Flags().IntVar(&tree.SpareCores, "spare-cores", 0, "core switches more in each group, with cables to the first pod only")
}

// addDirector adds directors, below which are leaves or hosts.
func (g *generator) addDirector() {
	var tree gen.TreeSpec
	var lines int
	c := g.treeKind("director", "directors, chassis of line and spine chips, with leaves or hosts below", &tree, func() (*fabric.Fabric, error) { return gen.Director(tree, lines) })
	c.Flags().IntVar(&tree.Groups, "directors", 1, "directors")
	c.Flags().IntVar(&lines, "line-chips", 4, "line chips of each director for each pod; 0: the leaves are the line chips of one director")
	c.Flags().IntVar(&tree.Cores, "spine-chips", 20, "spine chips of each director")
}

// treeKind adds a kind of trees, with the flags that all have.
func (g *generator) treeKind(use, short string, tree *gen.TreeSpec, make func() (*fabric.Fabric, error)) *cobra.Command {
	var pods int
	var leaves []int
	c := g.kind(use, short, func([]string) (*fabric.Fabric, error) {
		var err error
		if tree.Pods, err = gen.PodSizes(pods, leaves); err != nil {
			return nil, err
		}
		return make()
	})
	c.Flags().IntVar(&pods, "pods", 1, "pods, which meet in the switches on top")
	c.Flags().IntSliceVar(&leaves, "leaves", []int{8}, "leaves of each pod: `N`, or as many numbers as pods, with commas")
	c.Flags().IntVar(&tree.Ports, "ports", 40, "ports of each switch and chip")
	c.Flags().IntVar(&tree.Hosts, "hosts", 20, "hosts on each leaf")
	c.Flags().IntVar(&tree.HalfCabled, "half-cabled", 0, "last pods, or leaves where there is one level above, that have every second cable up only")
	c.Flags().IntVar(&tree.Management, "management-leaves", 0, "leaves more, each with two cables to one spine; half of them below a spine of their own if there are core switches")
	c.Flags().IntVar(&tree.ManagementHosts, "management-hosts", 4, "hosts on each of --management-leaves")
	return c
}

// addNetworks adds the shufflenet, and networks that are no trees or grids.
func (g *generator) addNetworks() {
	var p, k int
	c := g.kind("shufflenet", "bidirectional (p, k) shufflenet; p 2 and k 3 is Gerla's 24-node network", func([]string) (*fabric.Fabric, error) { return gen.Shufflenet(p, k) })
	c.Flags().IntVar(&p, "p", 2, "cables from a switch to the next column")
	c.Flags().IntVar(&k, "k", 3, "columns")
	var points int
	c = g.kind("lattice", "irregular network of 8-port switches on lattice points", func([]string) (*fabric.Fabric, error) { return gen.Lattice(points, g.change.Seed) })
	c.Flags().IntVar(&points, "switches", 128, "switches")
	var stages int
	var wrapAround bool
	c = g.kind("banyan", "banyan multistage network of 2x2 switches", func([]string) (*fabric.Fabric, error) { return banyan.Banyan(stages, wrapAround) })
	c.Flags().IntVar(&stages, "stages", 0, "stages `N`; there are 2^N processors")
	c.Flags().BoolVar(&wrapAround, "wrap-around", false, "a processor sends and receives with one channel adapter")
	g.require(c, "stages")
	var random gen.IrregularSpec
	c = g.kind("irregular", "connected random network, every switch of the same degree", func([]string) (*fabric.Fabric, error) {
		random.Seed = g.change.Seed
		return gen.Irregular(random)
	})
	c.Flags().IntVar(&random.Switches, "switches", 0, "switches")
	c.Flags().IntVar(&random.Degree, "degree", 0, "cables from each switch to other switches")
	c.Flags().IntVar(&random.Hosts, "hosts", 0, "hosts in all")
	g.require(c, "switches", "degree", "hosts")
}

// kindNames lists a command's subcommands.
func kindNames(cmd *cobra.Command) []string {
	var names []string
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			names = append(names, c.Name())
		}
	}
	return names
}

// allNames is kindNames with the commands that are hidden, and what commands were called.
func allNames(cmd *cobra.Command) (names []string) {
	for _, c := range cmd.Commands() {
		names = append(append(names, c.Name()), c.Aliases...)
	}
	return names
}

// parseDims reads --dims.
func parseDims(s string) ([]int, error) {
	dims, err := mesh.ParseDims(s)
	if err != nil {
		err = fmt.Errorf("--dims %q: %w", s, err)
	}
	return dims, err
}

// wrapAll is what --wrap without a value says.
const wrapAll = "all"

// parseWrap reads --wrap, which of n dimensions are rings.
func parseWrap(s string, n int) ([]bool, error) {
	if s == "" {
		return nil, nil
	}
	wrap, ok := mesh.ParseWrap(s, n)
	if !ok {
		return nil, fmt.Errorf("--wrap %q: want dimensions of the %d-dimensional mesh, like x,y or 1,2", s, n)
	}
	return wrap, nil
}

// parseSpeeds reads --speed.
func parseSpeeds(names []string) ([]fabric.Speed, error) {
	var speeds []fabric.Speed
	for _, name := range names {
		s, ok := fabric.ParseSpeed(strings.ToUpper(name))
		if !ok {
			return nil, fmt.Errorf("--speed %q: want QDR, FDR, EDR, HDR, NDR or XDR", name)
		}
		speeds = append(speeds, s)
	}
	return speeds, nil
}

// writeRun writes a directory as a run of ibdiagnet leaves it.
func writeRun(f *fabric.Fabric, dir string) error {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	framed := func(body func(io.Writer) error) func(io.Writer) error {
		return func(w io.Writer) error {
			ibdiagnet.WriteHead(w)
			err := body(w)
			ibdiagnet.WriteTail(w)
			return err
		}
	}
	for _, file := range []struct {
		name  string
		write func(io.Writer) error
	}{
		{"ibdiagnet2.db_csv", func(w io.Writer) error { return ibdiagnet.Write(w, f) }},
		{"ibdiagnet2.ibnetdiscover", framed(func(w io.Writer) error {
			_, err := w.Write(topology.AppendLabelled(nil, f))
			return err
		})},
		{"ibdiagnet2.lst", framed(func(w io.Writer) error { return dump.WriteSubnetList(w, f) })},
	} {
		if err := files.Write(filepath.Join(dir, file.name), file.write); err != nil {
			return err
		}
	}
	return nil
}

// fabricSize is "20 switches, 64 CA ports, 128 links".
func fabricSize(f *fabric.Fabric) string {
	return counts(f.NumSwitches(), len(f.CAPorts()), f.NumLinks())
}

func counts(switches, caPorts, links int) string {
	return fmt.Sprintf("%s, %s, %s", text.CountGrouped(switches, "switch", "switches"),
		text.CountGrouped(caPorts, "CA port", "CA ports"), text.CountGrouped(links, "link", "links"))
}
