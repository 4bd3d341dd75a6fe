package policy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/mesh"
	"github.com/ibweave/ibweave/routing/banyan"
)

// Kind is a kind of fabrics that `ibweave gen` makes.
type Kind struct {
	Name     string
	Short    string // in a line
	About    string // in sentences
	Example  string // flags of an example
	Required string // flags that must be given, with blanks between them
	// Define defines the flags of the kind. seed is for everything that is random.
	Define func(flags *pflag.FlagSet, seed *uint64) maker
}

// maker makes the fabric that parsed flags describe.
type maker = func() (*fabric.Fabric, error)

// Kinds lists the kinds in the order of help.
var Kinds = []Kind{
	{"mesh", "n-dimensional mesh", `Make a mesh: switches on the points of a grid, a cable to each neighbour, and
hosts on each switch. --wrap closes dimensions to rings. Port 1 of a switch
leads east, 2 north, 3 west, 4 south, then those of further dimensions follow,
then the hosts.`, "--dims 16x16 -o mesh.txt", "dims", func(flags *pflag.FlagSet, _ *uint64) maker {
		grid := defineGrid(flags)
		wrap := flags.String("wrap", "", "make rings of all dimensions, or of the named ones: `x,y,z` or numbers from 1")
		flags.Lookup("wrap").NoOptDefVal = WrapAll
		return func() (*fabric.Fabric, error) { return grid(*wrap) }
	}},
	{"torus", "n-dimensional torus: a mesh with all dimensions wrapped", "Make a torus: a mesh all of whose dimensions are rings.", "--dims 8x8x8 -o torus.txt", "dims", func(flags *pflag.FlagSet, _ *uint64) maker {
		grid := defineGrid(flags)
		return func() (*fabric.Fabric, error) { return grid(WrapAll) }
	}},
	{"hypercube", "hypercube", `Make a hypercube of 2^N switches, each with a cable to the N others whose
numbers differ in one bit.`, "--dim 6 -o cube.txt", "dim", func(flags *pflag.FlagSet, _ *uint64) maker {
		dim, hosts := flags.Int("dim", 0, "dimensions"), flags.Int("hosts", 1, "hosts on each switch")
		return func() (*fabric.Fabric, error) { return mesh.Hypercube(*dim, *hosts) }
	}},
	{"fattree", "fat tree of two or three levels", `Make a full fat tree of two or three levels. All its switches have
--radix ports.`, "--radix 36 --levels 3 -o tree.txt", "radix", func(flags *pflag.FlagSet, _ *uint64) maker {
		var tree gen.FatTreeSpec
		flags.IntVar(&tree.Radix, "radix", 0, "ports of each switch, an even number")
		flags.IntVar(&tree.Levels, "levels", 2, "levels of switches, 2 or 3")
		flags.IntVar(&tree.HostsPerLeaf, "hosts-per-leaf", 0, "hosts on each leaf; half the radix when not given")
		return func() (*fabric.Fabric, error) { return gen.FatTree(tree) }
	}},
	{"tree", "tree of pods below core switches, as sites have it", `Make a tree as sites have it: pods of leaves and spines, and core switches
above them. Hosts can have an adapter on each of several rails.`, "--leaves 4 --rails 8 --hosts 32 --spines 16 --parallel 2 --ports 64 -o rails.txt", "", func(flags *pflag.FlagSet, _ *uint64) maker {
		var tree gen.TreeSpec
		setPods := defineTree(flags, &tree)
		flags.IntVar(&tree.Rails, "rails", 1, "adapters of each host, each on a leaf of its own, so that each of --leaves is this many leaves")
		flags.IntVar(&tree.Spines, "spines", 10, "spines of each pod")
		flags.BoolVar(&tree.RailSpines, "rail-spines", false, "give each rail of a pod spines of its own")
		flags.IntVar(&tree.Parallel, "parallel", 1, "cables between a leaf and each spine of its pod")
		flags.IntVar(&tree.Groups, "groups", 0, "groups of core switches, each above as many spines of each pod; as many as spines when not given")
		flags.IntVar(&tree.Cores, "cores", 0, "core switches of each group")
		return func() (*fabric.Fabric, error) {
			if err := setPods(); err != nil {
				return nil, err
			}
			return gen.Tree(tree)
		}
	}},
	{"director", "directors of line and spine chips, with leaves or hosts below", `Make directors: chassis with line chips and spine chips. Leaves are cabled to
the line chips, or with --line-chips 0 the leaves are the line chips, with hosts
on them.`, "--directors 2 --pods 2 --leaves 4 -o directors.txt", "", func(flags *pflag.FlagSet, _ *uint64) maker {
		var tree gen.TreeSpec
		setPods := defineTree(flags, &tree)
		flags.IntVar(&tree.Groups, "directors", 1, "directors")
		lines := flags.Int("line-chips", 4, "line chips of each director for each pod; 0: the leaves are the line chips of one director")
		flags.IntVar(&tree.Cores, "spine-chips", 20, "spine chips of each director")
		return func() (*fabric.Fabric, error) {
			if err := setPods(); err != nil {
				return nil, err
			}
			return gen.Director(tree, *lines)
		}
	}},
	{"myrinet4", "four switches in a ring with eight hosts", "Make four switches of 8 ports in a ring, with two hosts on each.", "-o ring.txt", "", func(*pflag.FlagSet, *uint64) maker { return gen.Myrinet4 }},
	{"shufflenet", "bidirectional (p, k) shufflenet; p 2, k 3 is Gerla's with 24 nodes", `Make a shufflenet: K columns of P^K switches, each with cables to P switches of
the next column, and the last column with the first. Each switch has one host.`, "--p 2 --k 3 -o shufflenet.txt", "", func(flags *pflag.FlagSet, _ *uint64) maker {
		p, k := flags.Int("p", 2, "cables from a switch to the next column"), flags.Int("k", 3, "columns")
		return func() (*fabric.Fabric, error) { return gen.Shufflenet(*p, *k) }
	}},
	{"lattice", "irregular network of 8-port switches on lattice points", `Make an irregular network: switches of 8 ports on random points of a lattice, a
cable between any two on neighbouring points, and one host on each switch. The
paper on SPAM measures such networks.`, "--switches 128 --seed 3 -o lattice.txt", "", func(flags *pflag.FlagSet, seed *uint64) maker {
		points := flags.Int("switches", 128, "switches")
		return func() (*fabric.Fabric, error) { return gen.Lattice(*points, *seed) }
	}},
	{"banyan", "banyan multistage network of 2x2 switches", `Make a banyan network: N stages of 2x2 switches between 2^N processors. Each
processor sends with one adapter and receives with another, or with
--wrap-around uses one for both.`, "--stages 4 -o banyan.txt", "stages", func(flags *pflag.FlagSet, _ *uint64) maker {
		stages := flags.Int("stages", 0, "stages `N`; there are 2^N processors")
		wrapAround := flags.Bool("wrap-around", false, "a processor sends and receives with one channel adapter")
		return func() (*fabric.Fabric, error) { return banyan.Banyan(*stages, *wrapAround) }
	}},
	{"irregular", "connected random network, every switch of the same degree", `Make a connected random network in which every switch has the same number of
cables to other switches. The hosts are spread over the switches.`, "--switches 64 --degree 5 --hosts 256 -o random.txt", "switches degree hosts", func(flags *pflag.FlagSet, seed *uint64) maker {
		var random gen.IrregularSpec
		flags.IntVar(&random.Switches, "switches", 0, "switches")
		flags.IntVar(&random.Degree, "degree", 0, "cables from each switch to other switches")
		flags.IntVar(&random.Hosts, "hosts", 0, "hosts in all")
		return func() (*fabric.Fabric, error) {
			random.Seed = *seed
			return gen.Irregular(random)
		}
	}},
}

// WrapAll is the value that --wrap has if none is given: all dimensions are rings.
const WrapAll = "all"

// defineGrid defines the flags of grids. It returns a function that makes a grid with rings as in
// wrap (see mesh.ParseWrap).
func defineGrid(flags *pflag.FlagSet) func(wrap string) (*fabric.Fabric, error) {
	dims := flags.String("dims", "", "switches along each dimension, `AxB[xC..]`, x first")
	hosts := flags.Int("hosts", 1, "hosts on each switch")
	return func(wrap string) (_ *fabric.Fabric, err error) {
		spec := mesh.Spec{Hosts: *hosts}
		if spec.Dims, err = mesh.ParseDims(*dims); err != nil {
			return nil, fmt.Errorf("--dims %q: %w", *dims, err)
		}
		if wrap != "" {
			var ok bool
			if spec.Wrap, ok = mesh.ParseWrap(wrap, len(spec.Dims)); !ok {
				return nil, fmt.Errorf("--wrap %q: want dimensions of the %d-dimensional mesh, like x,y or 1,2", wrap, len(spec.Dims))
			}
		}
		return mesh.Generate(spec)
	}
}

// defineTree defines the flags that both kinds of trees have. It returns a function that sets the
// pods of tree.
func defineTree(flags *pflag.FlagSet, tree *gen.TreeSpec) (setPods func() error) {
	pods := flags.Int("pods", 1, "pods, which meet in the switches on top")
	leaves := flags.IntSlice("leaves", []int{8}, "leaves of each pod: `N`, or as many numbers as pods, with commas")
	flags.IntVar(&tree.Ports, "ports", 40, "ports of each switch and chip")
	flags.IntVar(&tree.Hosts, "hosts", 20, "hosts on each leaf")
	return func() (err error) {
		tree.Pods, err = gen.PodSizes(*pods, *leaves)
		return err
	}
}

// Generate makes the fabric of a generator line: a kind and its
// flags, with or without --, each followed by its value.
func Generate(text string) (*fabric.Fabric, error) {
	f, err := generate(strings.Fields(strings.ReplaceAll(text, "=", " ")))
	if err != nil {
		return nil, fmt.Errorf("generator line %q: %w", text, err)
	}
	return f, nil
}

func generate(fields []string) (*fabric.Fabric, error) {
	var names []string
	var make maker
	var flags pflag.FlagSet
	for _, k := range Kinds {
		names = append(names, k.Name)
		if len(fields) > 0 && fields[0] == k.Name {
			seed := uint64(1)
			if make = k.Define(&flags, &seed); k.Name == "lattice" || k.Name == "irregular" { // these are random
				flags.Uint64Var(&seed, "seed", seed, "")
			}
		}
	}
	if make == nil {
		return nil, fmt.Errorf("want one of %s, and its sizes, like fattree radix 40 levels 2", strings.Join(names, ", "))
	}
	var words []string
	flags.SortFlags = false
	flags.VisitAll(func(f *pflag.Flag) { words = append(words, f.Name) })
	for j := 1; j < len(fields); j++ {
		word := strings.TrimPrefix(fields[j], "--")
		flag := flags.Lookup(word)
		switch {
		case flag == nil:
			return nil, fmt.Errorf("%s has no %q; want %s", fields[0], fields[j], strings.Join(words, ", "))
		case flag.Changed:
			return nil, fmt.Errorf("%s comes twice", word)
		}
		value := flag.NoOptDefVal
		if value == "" || j+1 < len(fields) && !slices.Contains(words, strings.TrimPrefix(fields[j+1], "--")) {
			if j++; j == len(fields) {
				return nil, fmt.Errorf("%s needs a value", word)
			}
			value = fields[j]
		}
		if flags.Set(word, value) != nil {
			want := map[string]string{"int": "a number", "uint64": "a number", "intSlice": "numbers, with commas between them", "bool": "no value"}
			return nil, fmt.Errorf("%s %q: want %s", word, value, want[flag.Value.Type()])
		}
	}
	return make()
}
