package reproduce

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/papers/drawing"
)

var (
	updatePages = flag.Bool("update", false, "TestPages writes the tables and pictures of docs/papers again")
	pageFigures = flag.String("figures", "", "with -update, TestPages takes the figures in this folder of reproduce -o into docs/papers/data")
)

// papersDir is the pages, their pictures and their data.
const papersDir = "../../docs/papers"

// pageSeeds are the seeds that the pages judge by. Pictures and numbers are those of the first.
var pageSeeds = []uint64{1, 2, 3}

// checkData has figures of all experiments with all seeds, and of exhibits with the first
// one, all made by one version.
func checkData(t *testing.T, p *Paper, runs []map[string]*Figure) {
	t.Helper()
	versions := map[string]bool{}
	for i, seed := range pageSeeds {
		for w := range p.works() {
			switch f := runs[i][w.Name]; {
			case f != nil:
				versions[f.Version] = true
			case !w.Prints() || i == 0:
				t.Errorf("%s with seed %d is not in docs/papers/data: run make figures", w.ID(), seed)
			}
		}
	}
	short.Equal(t, len(versions), 1, p.ID, "docs/papers/data has figures", "versions: want one")
}

// dataFile has the figures of a paper with a seed.
func dataFile(p *Paper, seed uint64) string {
	return filepath.Join(papersDir, "data", fmt.Sprintf("%s-%d.json.gz", p.ID, seed))
}

// pageData reads the committed figures of a paper by seed and name.
func pageData(t *testing.T, p *Paper) []map[string]*Figure {
	t.Helper()
	runs := make([]map[string]*Figure, len(pageSeeds))
	for i, seed := range pageSeeds {
		runs[i] = map[string]*Figure{}
		f, err := os.Open(dataFile(p, seed))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		short.Check(t, err)
		z := short.Must(gzip.NewReader(f))(t)
		var list []*Figure
		if err := json.NewDecoder(z).Decode(&list); err != nil {
			t.Fatalf("%s: %v", f.Name(), err)
		}
		short.Check(t, f.Close())
		for _, fig := range list {
			for w := range p.works() {
				if w.ID() == fig.ID && w.Title == fig.Title && fig.Seed == seed && !fig.Quick {
					runs[i][w.Name] = fig
				}
			}
		}
	}
	return runs
}

// takeFigures puts the figures of a run into the data of the pages.
func takeFigures(t *testing.T, p *Paper, runs []map[string]*Figure) {
	t.Helper()
	for i, seed := range pageSeeds {
		for w := range p.works() {
			data, err := os.ReadFile(filepath.Join(SeedDir(*pageFigures, i, seed), filepath.FromSlash(w.ID())+".json"))
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			f := &Figure{}
			short.Check(t, errors.Join(err, json.Unmarshal(data, f)))
			if f.Quick || f.Seed != seed || f.Title != w.Title {
				t.Fatalf("%s: want a full run with seed %d of this program", w.ID(), seed)
			}
			runs[i][w.Name] = f
		}
		var list []*Figure
		for w := range p.works() {
			if f := runs[i][w.Name]; f != nil {
				list = append(list, f)
			}
		}
		if list == nil {
			continue
		}
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		short.Check(t, errors.Join(os.MkdirAll(filepath.Join(papersDir, "data"), 0o777), json.NewEncoder(z).Encode(list), z.Close(),
			os.WriteFile(dataFile(p, seed), b.Bytes(), 0o666)))
	}
}

// judged is a claim with its verdict and the seeds that it is by.
type judged struct {
	Judgement
	seeds []string
}

// judgePage judges each claim with the seeds that have all of its figures.
func judgePage(p *Paper, runs []map[string]*Figure) []judged {
	var list []judged
	for k := range p.Claims {
		one := *p
		one.Claims = p.Claims[k : k+1]
		var j judged
		var seeds []uint64
		var some []map[string]*Figure
		for i, figures := range runs {
			if one.Judge(figures)[0].Verdict != NotMeasured {
				seeds, some = append(seeds, pageSeeds[i]), append(some, figures)
				j.seeds = append(j.seeds, fmt.Sprint(pageSeeds[i]))
			}
		}
		if some == nil {
			seeds, some = pageSeeds[:1], runs[:1]
		}
		j.Judgement = one.JudgeSeeds(seeds, some)[0]
		list = append(list, j)
	}
	return list
}

var pageCell = strings.NewReplacer("|", `\|`, "\n", " ", "<", "&lt;").Replace

// anchor is a claim's place on its page.
func anchor(spec string) string {
	return strings.ToLower(strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == ',':
			return -1
		}
		return r
	}, spec))
}

// blocks are the parts of a page that data make, by name.
func blocks(p *Paper, runs []map[string]*Figure) map[string]string {
	var claims, ours, details, exhibits, figures, notes strings.Builder
	list := judgePage(p, runs)
	for _, b := range []*strings.Builder{&claims, &ours} {
		b.WriteString("| | claim | verdict |\n|---|---|---|\n")
	}
	for _, j := range list {
		b := &claims
		if j.Ours {
			b = &ours
		}
		fmt.Fprintf(b, "| [%s](#%s) | %s | **%s** |\n", j.Spec, anchor(j.Spec), pageCell(j.Claim), pageCell(j.Finding.String()))
		fmt.Fprintf(&details, "* <a id=\"%s\"></a>**%s**: %s. %s.", anchor(j.Spec), j.Spec, pageCell(j.Finding.String()), pageCell(j.Measured))
		if j.Why != "" {
			fmt.Fprintf(&details, " *%s.*", pageCell(j.Why))
		}
		if len(j.Figures) <= 3 {
			fmt.Fprintf(&details, " By `%s`", strings.Join(j.Figures, "`, `"))
		} else {
			fmt.Fprintf(&details, " By `%s` to `%s`", j.Figures[0], j.Figures[len(j.Figures)-1])
		}
		if j.seeds != nil && !slices.ContainsFunc(p.Exhibits, func(x Experiment) bool { return x.Name == j.Figures[0] }) {
			fmt.Fprintf(&details, ", seeds %s", strings.Join(j.seeds, ", "))
		}
		details.WriteString(".\n")
	}
	for w := range p.works() {
		f := runs[0][w.Name]
		if f == nil {
			continue
		}
		b := &figures
		if w.Prints() {
			b = &exhibits
			fmt.Fprintf(b, "### %s\n\n    ibweave-papers reproduce %s\n\n", w.Title, w.ID())
		}
		if f.picture() != nil {
			fmt.Fprintf(b, "![%s](%s.svg)\n\n", w.Title, w.ID())
		}
		for _, call := range f.Calls {
			fmt.Fprintf(b, "    %s\n", call)
		}
		if f.Calls != nil {
			b.WriteString("\n")
		}
		if !w.Prints() {
			continue
		}
		b.WriteString("| | the paper | computed |\n|---|---|---|\n")
		for _, r := range f.Rows {
			fmt.Fprintf(b, "| %s | %s | %s |\n", pageCell(r.What), pageCell(r.Paper), pageCell(r.Computed))
		}
		b.WriteString("\n")
	}
	for _, n := range p.Notes {
		fmt.Fprintf(&notes, "* %s\n", n)
	}
	return map[string]string{
		"claims": claims.String(), "additions": ours.String(), "details": details.String(),
		"exhibits": exhibits.String(), "figures": figures.String(), "notes": notes.String(),
	}
}

// index is a line for each paper.
func index(all map[*Paper][]map[string]*Figure) string {
	var b strings.Builder
	b.WriteString("| page | claims of the paper | hold | hold as something else | fail | open |\n|---|---|---|---|---|---|\n")
	for _, p := range Papers {
		count := map[Verdict]int{}
		n := 0
		for _, j := range judgePage(p, all[p]) {
			if j.Ours {
				continue
			}
			n++
			count[j.Verdict]++
		}
		open := n - count[Holds] - count[HoldsAs] - count[Fails]
		fmt.Fprintf(&b, "| [%s](papers/%s.md) | %d | %d | %d | %d | %d |\n", p.ID, p.ID, n, count[Holds], count[HoldsAs], count[Fails], open)
	}
	return b.String()
}

// fillPage puts blocks between their markers.
func fillPage(t *testing.T, path string, blocks map[string]string) {
	t.Helper()
	page := short.Must(os.ReadFile(path))(t)
	text, used := string(page), 0
	for name, block := range blocks {
		begin, end := "<!-- "+name+" -->\n", "<!-- end of "+name+" -->\n"
		before, rest, ok := strings.Cut(text, begin)
		_, after, closed := strings.Cut(rest, end)
		if !ok || !closed {
			continue
		}
		used++
		text = before + begin + "\n" + strings.TrimSpace(block) + "\n\n" + end + after
	}
	if used == 0 || blocks["claims"] != "" && (!strings.Contains(text, "<!-- claims -->") || !strings.Contains(text, "<!-- details -->")) {
		t.Errorf("%s has no place for the verdicts", path)
	}
	if text == string(page) {
		return
	}
	if !*updatePages {
		t.Errorf("%s is not what docs/papers/data and the judges say: run make pages, and read the diff", path)
		return
	}
	short.Check(t, os.WriteFile(path, []byte(text), 0o666))
}

// TestPages holds docs/papers to its data: verdicts are those that the judges give for the
// committed figures, and pictures are drawn from them.
func TestPages(t *testing.T) {
	all := map[*Paper][]map[string]*Figure{}
	for _, p := range Papers {
		runs := pageData(t, p)
		if *updatePages && *pageFigures != "" {
			takeFigures(t, p, runs)
		}
		all[p] = runs
		checkData(t, p, runs)
		fillPage(t, filepath.Join(papersDir, p.ID+".md"), blocks(p, runs))
		drawn := map[string]bool{}
		for w := range p.works() {
			f := runs[0][w.Name]
			if f == nil || f.picture() == nil {
				continue
			}
			path := filepath.Join(papersDir, filepath.FromSlash(w.ID())+".svg")
			drawn[filepath.Base(path)] = true
			var b bytes.Buffer
			if err := f.picture().SVG(&b); err != nil {
				t.Errorf("%s: %v", w.ID(), err)
			}
			if *updatePages {
				short.Check(t, errors.Join(os.MkdirAll(filepath.Dir(path), 0o777), os.WriteFile(path, b.Bytes(), 0o666)))
			}
			short.EqualList(t, short.Must(os.ReadFile(path))(t), b.Bytes(), path, "is not drawn from docs/papers/data")
		}
		pictures := short.Must(filepath.Glob(filepath.Join(papersDir, p.ID, "*.svg")))(t)
		for _, path := range pictures {
			if !drawn[filepath.Base(path)] {
				t.Errorf("%s is of no figure", path)
			}
		}
	}
	fillPage(t, filepath.Join(papersDir, "..", "reproduction.md"), map[string]string{"index": index(all)})
	holdCoverage(t, all)
}

var (
	coverageNumber = regexp.MustCompile(`^\| \[([XSNM][0-9]+)\]\(numbers\.md#`)
	coverageFigure = regexp.MustCompile(`\b([a-z0-9]+(?:-conf)?)/([a-z0-9-]+)`)
)

// holdCoverage holds docs/papers/coverage.md to the verdicts: a row of a number has those of its
// claims, and a row of figures counts those that they decide. Other rows say something else.
// Each claim and figure of the five papers has a row, as each number of numbers.md has.
func holdCoverage(t *testing.T, all map[*Paper][]map[string]*Figure) {
	t.Helper()
	path := filepath.Join(papersDir, "coverage.md")
	page := short.Must(os.ReadFile(path))(t)
	left := map[string]bool{} // numbers, claims and figures without a row
	for _, m := range regexp.MustCompile(`\*\*([XSNM][0-9]+)\*\* `).FindAllSubmatch(short.Must(os.ReadFile(filepath.Join(papersDir, "numbers.md")))(t), -1) {
		left[string(m[1])] = true
	}
	verdicts := map[*Paper][]judged{}
	for _, p := range Papers {
		verdicts[p] = judgePage(p, all[p])
		for _, j := range verdicts[p] {
			left[p.ID+" "+j.Spec] = true
		}
		for w := range p.works() {
			left[w.ID()] = true
		}
	}
	lines := strings.SplitAfter(string(page), "\n")
	for i, line := range lines {
		cells := strings.Split(strings.TrimSpace(line), " | ")
		if len(cells) != 5 || !strings.HasPrefix(line, "| [") {
			continue
		}
		var says []string
		if m := coverageNumber.FindStringSubmatch(line); m != nil {
			delete(left, m[1])
			for _, p := range Papers {
				for _, j := range verdicts[p] {
					if rest, ok := strings.CutPrefix(j.Spec, m[1]); ok && (rest == "" || strings.ContainsAny(rest[:1], " ,-")) {
						delete(left, p.ID+" "+j.Spec)
						says = append(says, fmt.Sprintf("[%s](%s.md#%s) **%s**", j.Spec, p.ID, anchor(j.Spec), pageCell(j.Finding.String())))
					}
				}
			}
		} else {
			count, n := map[Verdict]int{}, 0
			for _, p := range Papers {
				for _, j := range verdicts[p] {
					if slices.ContainsFunc(coverageFigure.FindAllStringSubmatch(cells[2], -1), func(m []string) bool { return m[1] == p.ID && slices.Contains(j.Figures, m[2]) }) {
						count[j.Verdict]++
						n++
					}
				}
			}
			if n > 0 {
				hold, as, fail := count[Holds], count[HoldsAs], count[Fails]
				says = append(says, fmt.Sprintf("%d: %d hold, %d as something else, %d fail, %d open", n, hold, as, fail, n-hold-as-fail))
			}
		}
		for _, m := range coverageFigure.FindAllString(cells[2], -1) {
			delete(left, m)
		}
		if verdict := strings.TrimSuffix(cells[4], " |"); says == nil && strings.Trim(verdict, " ?") == "" {
			t.Errorf("%s:%d: want a word on what became of it", path, i+1)
		} else if says != nil {
			lines[i] = strings.Join(cells[:4], " | ") + " | " + strings.Join(says, ", ") + " |\n"
		}
	}
	if len(left) > 0 {
		t.Errorf("%s has no row for %q", path, slices.Sorted(maps.Keys(left)))
	}
	switch text := strings.Join(lines, ""); {
	case text == string(page):
	case *updatePages:
		short.Check(t, os.WriteFile(path, []byte(text), 0o666))
	default:
		t.Errorf("%s has other verdicts than docs/papers/data and the judges: run make pages, and read the diff", path)
	}
}

// madeExhibits are the exhibits of all papers, made once.
var madeExhibits = sync.OnceValues(func() (map[string]*Figure, error) {
	var work []Work
	for _, p := range Papers {
		for w := range p.works() {
			if w.Prints() {
				work = append(work, w)
			}
		}
	}
	figures, err := Run(context.Background(), work, Options{Quick: true, Seed: 1})
	made := map[string]*Figure{}
	for _, f := range figures {
		made[f.ID] = f
	}
	return made, err
})

// TestExhibits has the worked examples and theorems of the papers by the real code, and
// what becomes of them.
func TestExhibits(t *testing.T) {
	made := short.Must(madeExhibits())(t)
	want := map[string]string{
		"zhou2010 X8": "holds", "zhou2010 X7": "holds as adaptive negative-first", "zhou2010 X2": "holds as x*n + y + 1",
		"zhou2010 X6": "holds as towards the destination's y in cases 3 and 4", "zhou2010 X9": "holds as with the host's port at each member",
		"zhou2010 X13": "fails", "zhou2010 X10": "holds as with virtual cut-through and copies that leave one by one",
		"zhou-conf X8": "holds", "zhou-conf X2": "holds as x*n + y + 1",
		"zhou-conf X6": "holds as towards the destination's y in cases 3 and 4", "zhou-conf X9": "holds as with the host's port at each member",
		"gerla1996 M7": "holds", "gerla1996 M8": "holds as for one multicast at a time", "gerla1996 M14": "holds", "gerla1996 M16": "holds",
		"gerla1996 M1": "holds", "gerla1996 M15-ack": "holds", "gerla1996 M18": "holds", "gerla1996 M17-order": "holds",
		"gerla1996 M3": "holds as outside of meshes with the root in a corner", "gerla1996 M12": "holds as where the root is not in the corner of a mesh",
		"spam S12": "holds", "spam S11-1": "holds", "spam S11-2": "holds",
		"min N4": "holds", "min N7": "holds", "min N8": "holds", "min N10": "holds as with three requests at the two elements, not four",
		"min N11": "holds as for two worms, or with room for whole packets",
	}
	for _, p := range Papers {
		figures := map[string]*Figure{}
		for w := range p.works() {
			if f := made[w.ID()]; f != nil {
				figures[w.Name] = f
				var b bytes.Buffer
				if err := f.Text(&b); err != nil || len(f.Rows) == 0 || !strings.Contains(b.String(), f.Rows[0].What) {
					t.Errorf("%s: %v\n%s", f.ID, err, &b)
				}
			}
		}
		for _, j := range p.Judge(figures) {
			if j.Verdict == NotMeasured {
				continue
			}
			id := p.ID + " " + j.Spec
			short.Equal(t, j.Finding.String(), want[id], id, j.Measured)
			delete(want, id)
		}
	}
	if len(want) > 0 {
		t.Errorf("not judged: %v", want)
	}
	// Pictures of deadlocks have a cycle: each packet waits for what another one holds.
	for _, id := range []string{"zhou2010/deadlock", "gerla1996/deadlock", "gerla1996/path-deadlock", "min/deadlock", "min/theorem2"} {
		waits := 0
		for _, a := range made[id].Drawings[0].Arrows {
			if !a.Waits {
				continue
			}
			waits++
			if !slices.ContainsFunc(made[id].Drawings[0].Arrows, func(b drawing.Arrow) bool {
				return !b.Waits && b.From == a.From && b.To == a.To && b.Who != a.Who
			}) {
				t.Errorf("%s: nothing holds what %s waits for", id, a.Who)
			}
		}
		if waits < 2 {
			t.Errorf("%s: %d packets wait", id, waits)
		}
	}
}

// TestNumbers has docs/papers resolve what sources and documents call by number: errata
// and reference values, and rules and experiments of papers where this package and the
// pages name them.
func TestNumbers(t *testing.T) {
	var pages []byte
	for _, name := range []string{"errata.md", "numbers.md"} {
		page := short.Must(os.ReadFile(filepath.Join("../../docs/papers", name)))(t)
		pages = append(pages, page...)
	}
	cited := map[string]string{} // by number: a file
	anywhere, here := regexp.MustCompile(`\b[EG]-[XSNM][0-9]+\b`), regexp.MustCompile(`\b[XSNM][0-9]+\b`)
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && path != "../.." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "bin") {
			return filepath.SkipDir
		}
		if ext := filepath.Ext(path); ext != ".go" && ext != ".md" {
			return nil
		}
		source, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, n := range anywhere.FindAll(source, -1) {
			cited[string(n)] = path
		}
		if dir := filepath.Base(filepath.Dir(path)); dir == "reproduce" || dir == "papers" {
			for _, n := range here.FindAll(source, -1) {
				cited[string(n)] = path
			}
		}
		return nil
	})
	if err != nil || len(cited) < 100 {
		t.Fatal(err, len(cited))
	}
	for n, path := range cited {
		if bytes.Count(pages, []byte(`<a id="`+strings.ToLower(n)+`"></a>**`+n+"** ")) != 1 {
			t.Errorf("docs/papers does not say once what %s is, which %s cites", n, path)
		}
	}
}
