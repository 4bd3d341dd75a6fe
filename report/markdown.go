package report

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/verify"
)

// Limits for a job summary of GitHub, which takes 1 MiB from a step and shows nothing of a
// longer one (Workflow commands for GitHub Actions, docs.github.com). Half of it is left to
// others.
const (
	maxMarkdown = 512 << 10 // bytes
	maxMessage  = 1000      // of a finding's text, bytes
)

// Markdown prints a result as a section in GitHub's Markdown: the verdict, the figures, and
// a table of undecided rules and of the causes of findings, the gravest first, as many as
// fit into a job summary. Descriptions of nodes can be any text: they are escaped, so that
// they are not read as Markdown or HTML.
func Markdown(w io.Writer, r *verify.Result, opt Options) error {
	var b bytes.Buffer
	failed, waived := 0, 0
	for i := range r.Findings {
		switch {
		case r.Findings[i].Waiver != nil:
			waived++
		case opt.fails(&r.Findings[i]):
			failed++
		}
	}
	verdict := "passes"
	switch {
	case failed > 0:
		verdict = "fails"
	case opt.Fails(r):
		verdict = "is undecided, and so fails"
	}
	fmt.Fprintf(&b, "## ibweave: %s %s\n\n", literal(opt.subject()), verdict)
	fmt.Fprintf(&b, "%s, of which %s and %s waived.\n\n",
		text.CountGrouped(len(r.Findings), "finding", "findings"), text.CountGrouped(failed, "fails", "fail"), text.Grouped(waived))
	b.WriteString("```text\n")
	var lines text.Sheet
	size(&lines, r)
	figures(&lines, r, &opt)
	for line := range strings.Lines(lines.String()) {
		b.WriteString(strings.ReplaceAll(line, "```", "'''"))
	}
	b.WriteString("```\n")
	if len(r.Findings)+len(r.Undecided) > 0 {
		b.WriteString("\n| severity | rule | finding |\n|---|---|---|\n")
	}
	for _, u := range r.Undecided {
		fmt.Fprintf(&b, "| undecided | `%s` | %s |\n", u.Rule, literal(u.Reason))
	}
	causes := causesOf(r)
	for i := range causes {
		c := &causes[i]
		message := c.Text
		if len(message) > maxMessage {
			message = strings.ToValidUTF8(message[:maxMessage], "") + " ..."
		}
		severity := c.Severity.String()
		if c.Waiver != nil {
			severity = "waived " + severity
			message += fmt.Sprintf(" (until %s: %s)", c.Waiver.Until, c.Waiver.Reason)
		}
		row := fmt.Sprintf("| %s | `%s` | %s", severity, c.Rule, literal(message))
		for _, line := range followsOf(c, &opt) {
			row += "<br>" + literal(line)
		}
		if row += " |\n"; b.Len()+len(row) > maxMarkdown {
			fmt.Fprintf(&b, "\n%s are left out.\n", text.CountGrouped(len(causes)-i, "cause", "causes"))
			break
		}
		b.WriteString(row)
	}
	_, err := w.Write(b.Bytes())
	return err
}

// literal escapes text so that a Markdown table shows it unchanged.
func literal(s string) string { return literals.Replace(s) }

var literals = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", "\n", " ", "\r", " ", `\`, "&#92;", "`", "&#96;", "*", "&#42;",
	"_", "&#95;", "[", "&#91;", "]", "&#93;", "|", "&#124;", "~", "&#126;", "#", "&#35;", "!", "&#33;", "@", "&#64;")
