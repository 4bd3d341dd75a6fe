package cli

import (
	"fmt"
	"strings"

	"github.com/agnivade/levenshtein"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// DescribeCompletion adds cobra's command completion to a program, in our words. values are
// those of flags that a shell completes.
func DescribeCompletion(root *cobra.Command, values string) {
	root.InitDefaultCompletionCmd() // which asks for the output now
	completion, _, _ := root.Find([]string{"completion"})
	completion.Short = "write the completion script of a shell"
	completion.Long = "Write the script with which a shell completes commands, flags and their values: " + values + ". The packages install these scripts."
	completion.Example = "  " + root.Name() + " completion bash > /etc/bash_completion.d/" + root.Name()
	for _, c := range completion.Commands() {
		c.Short = "write the completion script of " + c.Name()
		c.Long = strings.ReplaceAll(completionHelp[c.Name()], "PROGRAM", root.Name())
		c.Flags().Lookup("no-descriptions").Usage = "complete words alone, without what they mean"
	}
}

// completionHelp says how each shell takes the script of PROGRAM.
var completionHelp = map[string]string{
	"bash": `Write the completion script of bash, which needs the package bash-completion.
For this session:

  source <(PROGRAM completion bash)

For every session of all users:

  PROGRAM completion bash > /etc/bash_completion.d/PROGRAM`,
	"zsh": `Write the completion script of zsh. For this session:

  source <(PROGRAM completion zsh)

For every session, with a directory of $fpath:

  PROGRAM completion zsh > "${fpath[1]}/_PROGRAM"

Completion is on where ~/.zshrc has: autoload -U compinit; compinit.`,
	"fish": `Write the completion script of fish. For this session:

  PROGRAM completion fish | source

For every session:

  PROGRAM completion fish > ~/.config/fish/completions/PROGRAM.fish`,
	"powershell": `Write the completion script of PowerShell. For this session:

  PROGRAM completion powershell | Out-String | Invoke-Expression

For every session, add the output of the command to the PowerShell profile.`,
}

// Near asks whether the word of a list is meant that is most like another one; "" without any.
func Near(word string, list []string) string {
	best, distance := "", 1+max(1, len(word)/3)
	for _, other := range list {
		if d := levenshtein.ComputeDistance(strings.ToLower(word), strings.ToLower(other)); d < distance {
			best, distance = other, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf("; did you mean %s?", best)
}

// NearFlag is Near for an error of the flags of a command.
func NearFlag(cmd *cobra.Command, err error) string {
	_, name, ok := strings.Cut(err.Error(), "unknown flag: --")
	if !ok {
		return ""
	}
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	cmd.InheritedFlags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	hint := Near(name, names)
	return strings.Replace(hint, "mean ", "mean --", 1)
}
