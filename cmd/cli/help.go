// Package cli is what the command lines of ibweave and ibweave-papers share: help texts,
// manual pages and reference of what cobra's commands say of themselves, completion, exit
// statuses, progress, the log, and text that suits a terminal. It makes no promise to other
// modules.
package cli

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ibweave/ibweave/compile/outdir"
)

// Page is all that a command says of itself. The help text, the manual page and the page of
// docs/reference are made from it, and from nothing else.
type Page struct {
	Command  string // with the program in front
	Short    string
	Synopsis string  // "" for a help topic
	about    []block // from the Long of the command
	examples []string
	commands []itemList // by groups, of which a command without them has one
	flags    []Item
	global   []Item // flags of every command
	exit     []Item
}

// block is a paragraph, lines that stay as they are, or a list of items.
type block struct {
	text  string
	lines []string // without the indentation of two blanks
	items []Item
}

// Item is a flag, a command, an engine or another word, and what is said of it.
type Item struct{ Head, Text string }

// PageOf collects what a command says of itself.
func PageOf(c *cobra.Command) *Page {
	p := &Page{Command: c.CommandPath(), Short: c.Short, about: blocksOf(c.Long)}
	if c.Runnable() || c.HasAvailableSubCommands() {
		c.InitDefaultHelpFlag()
		c.Flags().Lookup("help").Usage = "print this text"
		p.Synopsis = c.UseLine()
	}
	for line := range strings.Lines(c.Example) {
		p.examples = append(p.examples, shellLines(strings.TrimSpace(line))...)
	}
	for _, sub := range c.Commands() {
		if !sub.IsAvailableCommand() {
			continue
		}
		title := cmp.Or(sub.GroupID, "Commands")
		if n := len(p.commands); n == 0 || p.commands[n-1].title != title {
			p.commands = append(p.commands, itemList{title: title})
		}
		last := &p.commands[len(p.commands)-1]
		last.items = append(last.items, Item{sub.Name(), sub.Short})
	}
	if p.Synopsis != "" {
		p.flags, p.global = flagItems(c.LocalFlags()), flagItems(c.InheritedFlags())
		p.exit = slices.Clone(exitStatuses)
		if note, ok := c.Root().Annotations[FindingsNote]; ok {
			p.exit[Findings].Text = note
		}
	}
	return p
}

// typeValues is what the values of flags are called whose usage does not name them, by type.
var typeValues = map[string]string{"int": "N", "uint": "N", "value": "N", "uints": "N,..", "duration": "TIME"}

// flagItems is what flags say of themselves, in the order of their names.
func flagItems(flags *pflag.FlagSet) (items []Item) {
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		head := "--" + f.Name
		if f.Shorthand != "" {
			head = "-" + f.Shorthand + ", " + head
		}
		value, text := pflag.UnquoteUsage(f)
		value = cmp.Or(typeValues[value], value)
		if value != "" {
			head += " " + value
		}
		if f.Value.Type() != "bool" && !slices.Contains([]string{"", "0", "[]"}, f.DefValue) {
			text += fmt.Sprintf(" (default %s)", f.DefValue)
		}
		items = append(items, Item{head, text})
	})
	return items
}

// blocksOf takes a help text apart. Lines without indentation are paragraphs, which blank and
// indented lines end. "  WORD  text" is an item, and goes on in lines with more indentation; other
// lines with two blanks in front stay as they are.
func blocksOf(long string) (blocks []block) {
	ended := true
	last := func(same bool) *block {
		if ended || !same {
			blocks = append(blocks, block{})
		}
		ended = false
		return &blocks[len(blocks)-1]
	}
	for line := range strings.Lines(long) {
		line = strings.TrimRight(line, " \n")
		var b block
		if len(blocks) > 0 {
			b = blocks[len(blocks)-1]
		}
		inside, indented := strings.CutPrefix(line, "  ")
		head, text, isItem := strings.Cut(inside, "  ")
		switch {
		case line == "":
			ended = true
		case !indented:
			b := last(b.text != "")
			b.text = strings.TrimSpace(b.text + " " + line)
		case head == "" && b.items != nil && !ended:
			i := &b.items[len(b.items)-1]
			i.Text += " " + strings.TrimSpace(line)
		case isItem && head != "":
			b := last(b.items != nil)
			b.items = append(b.items, Item{strings.TrimSpace(head), strings.TrimSpace(text)})
		default:
			b := last(b.lines != nil)
			b.lines = append(b.lines, inside)
		}
	}
	return blocks
}

// shellLines breaks a command of an example before flags, so that it fits on a manual page.
func shellLines(command string) (lines []string) {
	if len(command) <= manColumns {
		return []string{command}
	}
	for i, part := range strings.Split(command, " -") {
		if i > 0 {
			part = "-" + part
		}
		switch last := len(lines) - 1; {
		case i == 0:
			lines = append(lines, part)
		case len(lines[last])+len(part)+3 <= manColumns:
			lines[last] += " " + part
		default:
			lines[last] += " \\"
			lines = append(lines, "  "+part)
		}
	}
	return lines
}

// Columns of a terminal, and where the text of an item begins.
const (
	Columns    = 80
	manColumns = 73 // without the margin that man leaves
	itemColumn = 26
)

// Help is the page as --help prints it.
func (p *Page) Help() string {
	var b strings.Builder
	for i, block := range p.about {
		if i > 0 && (block.text != "" || p.about[i-1].text == "") {
			b.WriteByte('\n')
		}
		block.help(&b)
	}
	section := func(title string, body func()) {
		fmt.Fprintf(&b, "\n%s:\n", title)
		body()
	}
	if p.Synopsis != "" {
		section("Usage", func() {
			for i, line := range wrapped(p.Synopsis, Columns-6) {
				fmt.Fprintf(&b, "%s%s\n", []string{"  ", "      "}[min(i, 1)], line)
			}
		})
	}
	if p.examples != nil {
		section("Examples", func() { block{lines: p.examples}.help(&b) })
	}
	for _, s := range p.lists() {
		section(s.title, func() { block{items: s.items}.help(&b) })
	}
	return b.String()
}

// itemList is a section of a page.
type itemList struct {
	title string
	items []Item
}

// lists is the sections of a page that list something.
func (p *Page) lists() []itemList {
	return slices.DeleteFunc(append(slices.Clone(p.commands),
		itemList{"Flags", p.flags}, itemList{"Global flags", p.global}, itemList{"Exit status", p.exit},
	), func(l itemList) bool { return len(l.items) == 0 })
}

// Overview is what --help prints of a program: its commands by groups, in 40 lines at most.
func (p *Page) Overview() string {
	var b strings.Builder
	p.about[0].help(&b)
	b.WriteString("\nUsage: ibweave COMMAND [flags]\n\n")
	for _, g := range p.commands {
		fmt.Fprintf(&b, "%s:\n", g.title)
		for _, c := range g.items {
			fmt.Fprintf(&b, "  %-10s%s\n", c.Head, c.Text)
		}
	}
	b.WriteString(`
ibweave COMMAND --help has flags and examples; ibweave help forms, what is read.
Exit status: 0 clean; 1 findings or differences; 2 wrong usage; 3 bad input;
4 the environment lacks something.
`)
	return b.String()
}

// help writes a block for a terminal.
func (k block) help(b *strings.Builder) {
	for _, line := range wrapped(k.text, Columns) {
		if line != "" {
			b.WriteString(line + "\n")
		}
	}
	for _, line := range k.lines {
		b.WriteString(strings.TrimRight("  "+line, " ") + "\n")
	}
	at := 0 // the flags have room for -x in front, and all heads for two blanks behind
	for _, i := range k.items {
		at = min(max(at, len(i.label())+4), itemColumn)
	}
	for _, i := range k.items {
		head := "  " + i.label()
		for n, line := range wrapped(i.Text, Columns-at) {
			if n == 0 && len(head)+2 > at {
				b.WriteString(head + "\n")
				head = ""
			}
			fmt.Fprintf(b, "%-*s%s\n", at, head, line)
			head = ""
		}
	}
}

// label is the head, with room for a short flag in front of a long one.
func (i Item) label() string {
	if strings.HasPrefix(i.Head, "--") {
		return "    " + i.Head
	}
	return i.Head
}

// manEscapes writes text as groff reads it.
var manEscapes = strings.NewReplacer(`\`, `\e`, "-", `\-`, "'", `\(aq`, "`", `\(ga`, "^", `\(ha`, "~", `\(ti`)

// manLine is a line of text, which does not begin as a request to groff.
func manLine(text string) string {
	text = manEscapes.Replace(text)
	if strings.HasPrefix(text, ".") {
		text = `\&` + text
	}
	return text
}

// Man is the page as man reads it. Words are not hyphenated, and lines not justified.
func (p *Page) Man() string {
	var b strings.Builder
	name := strings.ReplaceAll(p.Command, " ", "-")
	fmt.Fprintf(&b, ".TH %s 1 \"\" \"ibweave %s\" \"ibweave\"\n.nh\n.ad l\n", strings.ToUpper(manEscapes.Replace(name)), outdir.Version)
	fmt.Fprintf(&b, ".SH NAME\n%s \\- %s\n", manEscapes.Replace(name), manEscapes.Replace(p.Short))
	if p.Synopsis != "" {
		fmt.Fprintf(&b, ".SH SYNOPSIS\n%s\n", manLine(p.Synopsis))
	}
	b.WriteString(".SH DESCRIPTION\n")
	for _, block := range p.about {
		block.man(&b)
	}
	if p.examples != nil {
		b.WriteString(".SH EXAMPLES\n")
		block{lines: p.examples}.man(&b)
	}
	for _, s := range p.lists() {
		fmt.Fprintf(&b, ".SH %s\n", strings.ToUpper(s.title))
		block{items: s.items}.man(&b)
	}
	if parent := p.Command[:max(0, strings.LastIndex(p.Command, " "))]; parent != "" {
		fmt.Fprintf(&b, ".SH SEE ALSO\n.BR %s (1)\n", manEscapes.Replace(strings.ReplaceAll(parent, " ", "-")))
	}
	return b.String()
}

// man writes a block for groff.
func (k block) man(b *strings.Builder) {
	if k.text != "" {
		fmt.Fprintf(b, ".PP\n%s\n", manLine(k.text))
	}
	if k.lines != nil {
		b.WriteString(".PP\n.nf\n")
		for _, line := range k.lines {
			b.WriteString(manLine(line) + "\n")
		}
		b.WriteString(".fi\n")
	}
	for _, i := range k.items {
		fmt.Fprintf(b, ".TP\n\\fB%s\\fR\n%s\n", manEscapes.Replace(i.Head), manLine(i.Text))
	}
}

// markdownEscapes keeps characters of plain text from being markup.
var markdownEscapes = func() *strings.Replacer {
	var pairs []string
	for _, c := range "\\`*_<>[]|#&~" {
		pairs = append(pairs, string(c), `\`+string(c))
	}
	return strings.NewReplacer(pairs...)
}()

// Markdown is the page as docs/reference has it.
func (p *Page) Markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\n%s\n", p.Command, markdownEscapes.Replace(p.Short))
	code := func(lines ...string) { fmt.Fprintf(&b, "\n```\n%s\n```\n", strings.Join(lines, "\n")) }
	if p.Synopsis != "" {
		code(p.Synopsis)
	}
	list := func(items []Item) {
		b.WriteByte('\n')
		for _, i := range items {
			head := "`" + i.Head + "`"
			if file := referenceFile(p.Command + " " + i.Head); slices.ContainsFunc(p.commands, func(l itemList) bool { return slices.Contains(l.items, i) }) {
				head = fmt.Sprintf("[%s](%s)", i.Head, file)
			}
			fmt.Fprintf(&b, "* %s: %s\n", head, markdownEscapes.Replace(i.Text))
		}
	}
	for _, block := range p.about {
		switch {
		case block.text != "":
			fmt.Fprintf(&b, "\n%s\n", markdownEscapes.Replace(block.text))
		case block.lines != nil:
			code(block.lines...)
		default:
			list(block.items)
		}
	}
	if p.examples != nil {
		b.WriteString("\n## Examples\n")
		code(p.examples...)
	}
	for _, s := range p.lists() {
		fmt.Fprintf(&b, "\n## %s\n", s.title)
		list(s.items)
	}
	return b.String()
}

// referenceFile is the name of the page of a command in docs/reference.
func referenceFile(command string) string {
	_, rest, below := strings.Cut(command, " ")
	if !below {
		return "README.md"
	}
	return strings.ReplaceAll(rest, " ", "-") + ".md"
}

// Pages is the pages of all commands by the names of their files: manual pages, or those of
// docs/reference, as the value of --format, man or markdown, says. Another value is an error.
func Pages(root *cobra.Command, format string) (map[string]string, error) {
	pages := map[string]string{}
	switch format {
	case "man":
		EachPage(root, func(p *Page) { pages[strings.ReplaceAll(p.Command, " ", "-")+".1"] = p.Man() })
	case "markdown":
		EachPage(root, func(p *Page) { pages[referenceFile(p.Command)] = p.Markdown() })
	default:
		return nil, fmt.Errorf("--format %q: want man or markdown", format)
	}
	return pages, nil
}

// EachPage visits the pages of all commands and help topics, but those of help itself and of
// commands without a text, which have moved.
func EachPage(root *cobra.Command, visit func(*Page)) {
	Walk(root, func(c *cobra.Command) {
		if c.Name() != "help" && c.Long != "" {
			visit(PageOf(c))
		}
	})
}

// Walk visits a command and all below it.
func Walk(c *cobra.Command, visit func(*cobra.Command)) {
	visit(c)
	for _, sub := range c.Commands() {
		Walk(sub, visit)
	}
}

// wrapped breaks text into lines of most bytes or fewer.
func wrapped(text string, most int) (lines []string) {
	line := ""
	for word := range strings.FieldsSeq(text) {
		if line != "" && len(line)+1+len(word) > most {
			lines = append(lines, line)
			line = ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	return append(lines, line)
}

// The exit statuses of every command.
const (
	Clean       = 0
	Findings    = 1
	Usage       = 2
	Input       = 3
	Environment = 4
)

// FindingsNote is the annotation of a root command that says what status 1 of its program is.
const FindingsNote = "findings"

// exitStatuses is in every help text and manual page.
var exitStatuses = []Item{
	{"0", "done and clean"},
	{"1", "done, and there are findings at or above --fail-on, rules that the input leaves undecided, or differences; or the engine does not support this fabric"},
	{"2", "wrong usage"},
	{"3", "input that cannot be read or is invalid; the message has file:line"},
	{"4", "the environment lacks something, an input or output error, or interrupted"},
}
