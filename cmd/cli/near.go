package cli

import (
	"fmt"
	"strings"

	"github.com/agnivade/levenshtein"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Near asks "did you mean" the word of list that is most like word; "" if none is like it.
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

// NearFlag returns "did you mean --x?" for cobra's error about an unknown flag; "" for other
// errors, and if no flag is similar.
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
