"""What do runs, comparisons and the catalog look like in the terminal?"""
