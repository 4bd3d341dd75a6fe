package policy

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/mesh"
)

// kinds are the fabrics that a generator line can name, with their words: those of
// `ibweave gen` whose shape is recognized with cables missing. A word may have its -- in front.
var kinds = []struct {
	name  string
	words []string
	make  func(*line) (*fabric.Fabric, error)
}{
	{"fattree", []string{"radix", "levels", "hosts-per-leaf"}, func(l *line) (*fabric.Fabric, error) {
		return gen.FatTree(gen.FatTreeSpec{Radix: l.number("radix", 0), Levels: l.number("levels", 2), HostsPerLeaf: l.number("hosts-per-leaf", 0)})
	}},
	{"tree", append(treeWords(), "rails", "rail-spines", "spines", "parallel", "groups", "cores", "spare-cores"), func(l *line) (*fabric.Fabric, error) {
		spec := l.tree()
		spec.Rails, spec.RailSpines = l.number("rails", 1), l.truth("rail-spines")
		spec.Spines, spec.Parallel = l.number("spines", 10), l.number("parallel", 1)
		spec.Groups, spec.Cores, spec.SpareCores = l.number("groups", 0), l.number("cores", 0), l.number("spare-cores", 0)
		return gen.Tree(spec)
	}},
	{"director", append(treeWords(), "directors", "line-chips", "spine-chips"), func(l *line) (*fabric.Fabric, error) {
		spec := l.tree()
		spec.Groups, spec.Cores = l.number("directors", 1), l.number("spine-chips", 20)
		return gen.Director(spec, l.number("line-chips", 4))
	}},
	{"mesh", []string{"dims", "wrap", "hosts"}, func(l *line) (*fabric.Fabric, error) {
		spec := mesh.Spec{Dims: l.sizes("dims"), Hosts: l.number("hosts", 1)}
		spec.Wrap = l.wraps("wrap", len(spec.Dims))
		return l.grid(spec)
	}},
	{"torus", []string{"dims", "hosts"}, func(l *line) (*fabric.Fabric, error) {
		spec := mesh.Spec{Dims: l.sizes("dims"), Hosts: l.number("hosts", 1)}
		spec.Wrap = slices.Repeat([]bool{true}, len(spec.Dims))
		return l.grid(spec)
	}},
	{"hypercube", []string{"dim", "hosts"}, func(l *line) (*fabric.Fabric, error) {
		return mesh.Hypercube(l.number("dim", 0), l.number("hosts", 1))
	}},
}

// line is the words of a generator line, and what is wrong with them.
type line struct {
	words map[string]string
	err   error
}

// Generate makes the fabric of a generator line: a kind as `ibweave gen` has it, and
// its flags, with or without --, each followed by its value.
func Generate(text string) (*fabric.Fabric, error) {
	fields := strings.Fields(strings.ReplaceAll(text, "=", " "))
	names := make([]string, len(kinds))
	for i := range kinds {
		names[i] = kinds[i].name
	}
	i := -1
	if len(fields) > 0 {
		i = slices.Index(names, fields[0])
	}
	if i < 0 {
		return nil, fmt.Errorf("generator line %q: want one of %s, and its sizes, like fattree radix 40 levels 2", text, strings.Join(names, ", "))
	}
	k := &kinds[i]
	l := &line{words: make(map[string]string)}
	for j := 1; j < len(fields); j++ {
		word := strings.TrimPrefix(fields[j], "--")
		if !slices.Contains(k.words, word) {
			return nil, fmt.Errorf("generator line %q: %s has no %q; want %s", text, k.name, fields[j], oneOf(k.words))
		}
		if _, dup := l.words[word]; dup {
			return nil, fmt.Errorf("generator line %q: %s comes twice", text, word)
		}
		if slices.Contains([]string{"wrap", "rail-spines"}, word) && (j+1 == len(fields) || slices.Contains(k.words, strings.TrimPrefix(fields[j+1], "--"))) {
			l.words[word] = "all"
			continue
		}
		if j++; j == len(fields) {
			return nil, fmt.Errorf("generator line %q: %s needs a value", text, word)
		}
		l.words[word] = fields[j]
	}
	f, err := k.make(l)
	if l.err != nil {
		err = l.err
	}
	if err != nil {
		return nil, fmt.Errorf("generator line %q: %w", text, err)
	}
	return f, nil
}

func oneOf(words []string) string {
	if len(words) == 0 {
		return "nothing after it"
	}
	return strings.Join(words, ", ")
}

func (l *line) fail(word, want string) {
	if l.err == nil {
		l.err = fmt.Errorf("%s %q: want %s", word, l.words[word], want)
	}
}

// number reads a number; absent gives what it is without.
func (l *line) number(word string, absent int) int {
	s, ok := l.words[word]
	if !ok {
		return absent
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 0 {
		l.fail(word, "a number")
	}
	return n
}

func (l *line) truth(word string) bool {
	s, ok := l.words[word]
	if ok && s != "all" {
		l.fail(word, "no value")
	}
	return ok
}

// treeWords are the words that trees of both kinds have.
func treeWords() []string {
	return []string{"pods", "leaves", "ports", "hosts", "half-cabled", "management-leaves", "management-hosts"}
}

// tree reads them, with what gen has without them.
func (l *line) tree() gen.TreeSpec {
	spec := gen.TreeSpec{
		Ports: l.number("ports", 40), Hosts: l.number("hosts", 20), HalfCabled: l.number("half-cabled", 0),
		Management: l.number("management-leaves", 0), ManagementHosts: l.number("management-hosts", 4),
	}
	leaves := []int{8}
	if s, ok := l.words["leaves"]; ok {
		leaves = nil
		for field := range strings.SplitSeq(s, ",") {
			n, err := strconv.Atoi(field)
			if err != nil {
				l.fail("leaves", "numbers, with commas between them")
			}
			leaves = append(leaves, n)
		}
	}
	pods, err := gen.PodSizes(l.number("pods", 1), leaves)
	if l.err == nil {
		l.err = err
	}
	spec.Pods = pods
	return spec
}

// sizes reads 16x16x4.
func (l *line) sizes(word string) []int {
	dims, err := mesh.ParseDims(l.words[word])
	if err != nil && l.err == nil {
		l.err = fmt.Errorf("%s %q: %w", word, l.words[word], err)
	}
	return dims
}

// wraps reads which of n dimensions are rings: all, or x,y,z and numbers from 1.
func (l *line) wraps(word string, n int) []bool {
	s, ok := l.words[word]
	if !ok {
		return nil
	}
	wrap, ok := mesh.ParseWrap(s, n)
	if !ok {
		l.fail(word, fmt.Sprintf("dimensions of %d, like x,y or 1,2", n))
	}
	return wrap
}

func (l *line) grid(spec mesh.Spec) (*fabric.Fabric, error) {
	if l.err != nil {
		return nil, l.err
	}
	return mesh.Generate(spec)
}
