# PowerShell completion for bridgehead. In $PROFILE:  bridgehead completion powershell | Out-String | Invoke-Expression
Register-ArgumentCompleter -Native -CommandName bridgehead -ScriptBlock {
    param($typed, $line, $cursor)
    $words = @($line.CommandElements | Where-Object { $_.Extent.StartOffset -lt $cursor } | ForEach-Object { $_.ToString() })
    # Older PowerShells drop an empty argument, so that a new word has to be said in another way.
    $env:BRIDGEHEAD_COMPLETE = if ($typed -eq '') { 'next' } else { '1' }
    try {
        $found = & $words[0] @($words | Select-Object -Skip 1) 2>$null
    } finally {
        Remove-Item Env:BRIDGEHEAD_COMPLETE
    }
    foreach ($one in $found) {
        if ($one -eq ':paths') { return }
        $word, $meaning = $one -split "`t", 2
        if (-not $meaning) { $meaning = $word }
        [System.Management.Automation.CompletionResult]::new($word, $word, 'ParameterValue', $meaning)
    }
}
