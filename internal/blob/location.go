package blob

import (
	"net/url"
	"strings"
)

// TableLocation returns the root of the store that rawURL names as readers of
// tables spell it: s3 and gs URLs as they are, and
// abfss://container@account.dfs.core.windows.net/prefix for azblob. It is empty for
// what is no bucket, and for an azblob store whose account nobody names.
func TableLocation(rawURL string, c Cloud) string {
	if !IsCloud(rawURL) {
		return ""
	}
	rawURL = strings.TrimRight(rawURL, "/")
	rest, azure := strings.CutPrefix(rawURL, schemeAzure+"://")
	if !azure {
		return rawURL
	}
	account := accountAzure(c)
	if account == "" {
		return ""
	}
	name, prefix, _ := strings.Cut(rest, "/")
	return strings.TrimRight("abfss://"+name+"@"+account+".dfs.core.windows.net/"+prefix, "/")
}

// accountAzure returns the name of the storage account, if only from the address of
// its service.
func accountAzure(c Cloud) string {
	if account := surroundingsAzure(c.Credentials).ID; account != "" {
		return account
	}
	u, err := url.Parse(c.Endpoint)
	if err != nil {
		return ""
	}
	account, _, _ := strings.Cut(u.Hostname(), ".")
	return account
}
