"""The program `xlalite`: one file a command, loaded only when it is asked for. It may import everything."""
